export function SessionPage() {
  return <h1>SessionPage</h1>;
}
