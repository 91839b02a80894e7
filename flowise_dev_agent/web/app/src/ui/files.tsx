/** Files that a person hands over: dropped or chosen, stored by the service, shown as chips. */
import { useMutation } from "@tanstack/react-query";
import { type DragEvent, type ReactNode, useId, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import type { AttachmentView } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "./ErrorNote";

const KINDS = ".pdf,.txt,.md,.markdown,.csv,.json,.yaml,.yml";

/** What the page keeps of a stored file. */
export interface StoredFile {
  id: string;
  name: string;
  kind: AttachmentView["facts"]["kind"];
}

/** Store a file with the service; what it is comes back. */
export async function upload(file: File): Promise<StoredFile> {
  const body = new FormData();
  body.append("file", file);
  const stored = await dataOf(
    api.POST("/attachments", { body: body as unknown as { file: string }, bodySerializer: () => body }),
  );
  return { id: stored.id, name: stored.facts.name, kind: stored.facts.kind };
}

/** As the service has it. */
const MOST_MB = 20;

/** Before it is sent; a dropped file can be any. */
function check({ name, size }: File, kinds: string): void {
  const endings = kinds.split(",").map((one) => one.trim().toLowerCase());
  if (kinds && !endings.some((one) => one === "*" || name.toLowerCase().endsWith(one)))
    throw new Error(t("{{name}} does not fit here. It takes {{kinds}}.", { name, kinds: endings.join(", ") }));
  if (size > MOST_MB * 1024 ** 2) throw new Error(t("{{name}} is larger than {{most}} MB.", { name, most: MOST_MB }));
}

interface Props {
  files: StoredFile[];
  onChange: (files: StoredFile[]) => void;
  children: ReactNode;
  className?: string;
  /** Endings of the files that are taken. */
  kinds?: string | undefined;
  /** At least one must be there. */
  needed?: boolean;
}

/** True while files are held over an element, and the handlers by which it takes them. */
export function useFileDrop(take: (files: File[]) => void) {
  const [over, setOver] = useState(false);
  const held = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!held(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      setOver(false);
      if (!held(event)) return;
      event.preventDefault();
      take([...event.dataTransfer.files]);
    },
  };
  return { over, handlers };
}

/** A field that files can be dropped on, with a button for those who do not drag and a chip for each file. */
export function FileDrop({ files, onChange, children, className = "", kinds = "", needed }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const latest = useRef(files);
  latest.current = files;
  const store = useMutation({
    mutationFn: async (dropped: File[]) => {
      for (const file of dropped) {
        check(file, kinds);
        const stored = await upload(file);
        latest.current = [...latest.current, stored];
        onChange(latest.current);
      }
    },
  });
  const lacks = needed && files.length === 0;
  const id = useId();
  const { over, handlers } = useFileDrop(store.mutate);
  return (
    <div className={`file-drop ${over ? "over" : ""} ${className}`} {...handlers}>
      {children}
      <div className="row">
        <button
          type="button"
          className="button small"
          disabled={store.isPending}
          {...(lacks && { "data-lacking": true, "aria-describedby": id })}
          onClick={() => picker.current?.click()}
        >
          {store.isPending ? t("Reading the file…") : t("Add a file")}
        </button>
        <input
          ref={picker}
          type="file"
          hidden
          multiple
          accept={kinds || KINDS}
          aria-label={t("Files")}
          onChange={(event) => {
            store.mutate([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        {lacks && (
          <small id={id} className="problem">
            {t("Still needed")}
          </small>
        )}
        {files.map((file) => (
          <span key={file.id} className="chip file">
            {file.name} <small>{file.kind}</small>
            <button
              type="button"
              aria-label={t("Remove {{name}}", { name: file.name })}
              onClick={() => onChange(files.filter((one) => one.id !== file.id))}
            >
              ✕
            </button>
          </span>
        ))}
      </div>
      <ErrorNote error={store.error} />
    </div>
  );
}
