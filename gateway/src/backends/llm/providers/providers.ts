import type { Endpoint } from '../request/endpoints.ts'
import { anthropic } from './anthropic.ts'
import { azureKind } from './azure.ts'
import { bedrockKind } from './bedrock/bedrock.ts'
import { copilotKind } from './copilot.ts'
import { customKind } from './custom.ts'
import { echo } from './echo/echo.ts'
import { gemini } from './google/gemini.ts'
import { vertexKind } from './google/vertex.ts'
import { openai } from './openai.ts'
import { presetKinds } from './presets.ts'
import { fixedKind, type ProviderKind } from './provider.ts'

/** All provider kinds. */
export const providerKinds: readonly ProviderKind[] = [
  fixedKind(openai),
  fixedKind(anthropic),
  fixedKind(echo),
  azureKind,
  fixedKind(gemini),
  vertexKind,
  bedrockKind,
  copilotKind,
  customKind,
  ...presetKinds,
]

/** Alternative spellings in existing configurations. */
const aliases: ReadonlyMap<string, string> = new Map([['openAI', 'openai']])

/** All names that `findProviderKind` accepts, with their kinds. */
export const providerNames: ReadonlyMap<string, ProviderKind> = new Map(
  [...providerKinds.map(({ name }) => name), ...aliases.keys()].flatMap((name) => {
    const kind = findProviderKind(name)
    return kind === undefined ? [] : [[name, kind] as const]
  }),
)

/** Names of the kinds that offer a call, at most five, for error messages. */
export function kindsOffering(endpoint: Endpoint): readonly string[] {
  return providerKinds
    .filter(({ calls }) => calls?.includes(endpoint))
    .map(({ name }) => name)
    .slice(0, 5)
}

/** The provider kind by name or alias. */
export function findProviderKind(name: string): ProviderKind | undefined {
  const canonical = aliases.get(name) ?? name
  return providerKinds.find((kind) => kind.name === canonical)
}
