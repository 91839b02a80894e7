export function ReferenceView() {
  return <h1>ReferenceView</h1>;
}
