import { NewSession } from "./NewSession";
import { SessionList } from "./SessionList";
import "./sessions.css";

export function SessionsView() {
  return (
    <div className="home">
      <NewSession />
      <SessionList />
    </div>
  );
}
