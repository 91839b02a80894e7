/** Files on a field of a node: a field for files keeps them, a field for text takes what is read in one. */
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, dataOf } from "../api/client";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { FileDrop, type StoredFile } from "../ui/files";
import { count } from "../ui/format";

/** Characters of a field that is changed by hand; an answer has a limit. */
const MOST = 100_000;

interface Props {
  /** The field holds files, not text. */
  keeps: boolean;
  /** Endings that it takes, such as ".pdf"; all that the service reads when left out. */
  kinds?: string | undefined;
  files: StoredFile[];
  /** A value of null means none. */
  onSet: (value: string | null, files?: StoredFile[]) => void;
  children?: ReactNode;
}

export function ParamFiles({ keeps, kinds, files, onSet, children }: Props) {
  const read = useMutation({ mutationFn: textOf, onSuccess: (text) => onSet(text) });
  function changed(next: StoredFile[]) {
    const newest = next.at(-1);
    if (keeps) onSet(newest ? markOf(next) : null, next);
    else if (newest) read.mutate(newest.id);
  }
  return (
    <FileDrop files={files} kinds={kinds} onChange={changed}>
      {children}
      <ErrorNote error={read.error} />
    </FileDrop>
  );
}

/** What a plan holds in place of files of the session; the service puts in their content. */
const markOf = (files: StoredFile[]): string => `[ATTACHMENT: ${files.map((one) => one.name).join("; ")}]`;

async function textOf(attachment_id: string): Promise<string> {
  const params = { path: { attachment_id }, query: { text: true } };
  const { text } = await dataOf(api.GET("/attachments/{attachment_id}", { params }));
  if ((text ?? "").length > MOST)
    throw new Error(
      t("The file has {{number}} characters; a field takes {{most}}.", {
        number: count(text?.length ?? 0),
        most: count(MOST),
      }),
    );
  return text ?? "";
}
