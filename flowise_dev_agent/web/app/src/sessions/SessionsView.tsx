export function SessionsView() {
  return <h1>SessionsView</h1>;
}
