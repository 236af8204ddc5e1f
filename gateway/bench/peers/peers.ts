import { agentgateway } from './agentgateway/agentgateway.ts'
import { bifrost } from './bifrost/bifrost.ts'
import type { PeerCommand } from './command.ts'
import type { PeerDefinition, PeerStageName } from './definition.ts'
import { litellm } from './litellm/litellm.ts'
import { portkey } from './portkey/portkey.ts'
import { hasPlaceholder } from './template.ts'

/** The products with configurations in this folder. */
export const definitions: readonly PeerDefinition[] = [agentgateway, bifrost, litellm, portkey]

/** A gateway whose command has all its settings. It serves the requests of every workload unchanged. */
const other: Omit<PeerDefinition, 'name'> = {
  install: 'install it',
  args: [],
  ready: { port: 'port', path: '/' },
  stages: {
    llm: { files: {}, without: [] },
    mcp: { files: {}, without: [] },
    http: { files: {}, without: [] },
  },
}

/**
 * The definition with the name of a peer. A further peer needs a command with placeholders, `{{port}}` and
 * `{{upstreamPort}}`.
 */
export function definitionOf({ name, command }: PeerCommand): PeerDefinition {
  const named = definitions.find((definition) => definition.name === name.toLowerCase())
  if (named) return named
  if (command.some(hasPlaceholder)) return { name, ...other }
  const names = definitions.map((definition) => definition.name).join(', ')
  throw new Error(
    `there is no configuration for peer ${name}: name one of ${names}, or use {{port}} and {{upstreamPort}} in the command`,
  )
}

/** Work of a stage that a product does not do, or undefined if it cannot serve the stage. */
export function absentIn(command: PeerCommand, stage: PeerStageName): readonly string[] | undefined {
  return definitionOf(command).stages[stage]?.without
}
