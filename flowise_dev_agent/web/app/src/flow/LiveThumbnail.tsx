import { useQuery } from "@tanstack/react-query";
import { FlowThumbnail } from "./FlowThumbnail";
import { flowGraph } from "./queries";

/** The thumbnail of a flow on the server; an empty frame until it is there, and if it never comes. */
export function LiveThumbnail({ id, instance }: { id: string; instance?: string }) {
  const { data } = useQuery(flowGraph(id, instance, false));
  return data ? <FlowThumbnail view={data.graph} /> : <span className="thumbnail empty" aria-hidden="true" />;
}
