import { type ChangeEvent, type InputHTMLAttributes, type Ref, useId, useState } from "react";
import { tooLong } from "./tooLong";

interface Props extends InputHTMLAttributes<HTMLInputElement> {
  /** What the service accepts. The browser would cut a longer text without a word; here it stays, and is not sent. */
  most: number;
  ref?: Ref<HTMLInputElement>;
}

/** A line of text that is refused with the number when it is too long; its form is not sent then. */
export function TextInput({ most, onChange, ...given }: Props) {
  const id = useId();
  const [problem, setProblem] = useState("");
  function changed(event: ChangeEvent<HTMLInputElement>) {
    const wrong = tooLong(event.target.value, most);
    event.target.setCustomValidity(wrong);
    setProblem(wrong);
    onChange?.(event);
  }
  return (
    <>
      <input
        {...given}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? id : given["aria-describedby"]}
        onChange={changed}
      />
      {problem && (
        <small id={id} role="alert" className="problem">
          {problem}
        </small>
      )}
    </>
  );
}
