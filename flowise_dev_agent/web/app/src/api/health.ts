import { call } from "./client";

export interface Health {
  status: string;
  version: string;
  reasoning: { engine: string; model: string };
  flowise: Record<string, { endpoint: string; state: string; error?: { detail?: string } }>;
  model_stand_in: boolean;
}

export const getHealth = (): Promise<Health> => call("/health");
