import { type ClientEndpoint, operations } from '../request/endpoints.ts'
import { translationsFrom } from '../translate/translations.ts'
import { type ProviderPaths, pathsOf } from './provider.ts'
import { findProviderKind, providerKinds } from './providers.ts'

/** Settings and models of kinds whose calls depend on them. */
const samples: readonly { kind: string; label: string; settings: object; model: string }[] = [
  { kind: 'azure', label: 'azure', settings: { resourceName: 'r', resourceType: 'openAI' }, model: 'gpt' },
  {
    kind: 'azure',
    label: 'azure, Claude',
    settings: { resourceName: 'r', resourceType: 'foundry' },
    model: 'claude-x',
  },
  { kind: 'vertex', label: 'vertex, Gemini', settings: { projectId: 'p', region: 'r' }, model: 'gemini-x' },
  { kind: 'vertex', label: 'vertex, Claude', settings: { projectId: 'p', region: 'r' }, model: 'claude-x' },
  { kind: 'bedrock', label: 'bedrock', settings: { region: 'us-east-1' }, model: 'amazon.nova-pro-v1:0' },
  {
    kind: 'bedrock',
    label: 'bedrock, Claude',
    settings: { region: 'us-east-1' },
    model: 'anthropic.claude-x',
  },
  {
    kind: 'vertex',
    label: 'vertex, embeddings',
    settings: { projectId: 'p', region: 'r' },
    model: 'text-embedding-005',
  },
  {
    kind: 'bedrock',
    label: 'bedrock, embeddings',
    settings: { region: 'us-east-1' },
    model: 'amazon.titan-embed-text-v2:0',
  },
]

const isSampled = (name: string) => samples.some(({ kind }) => kind === name)

function rows(): [label: string, paths: ProviderPaths][] {
  const plain = providerKinds
    .filter(({ name }) => !isSampled(name))
    .map(({ name, configure }): [string, ProviderPaths] => [
      name,
      pathsOf(configure({}), { model: 'm', streaming: false }),
    ])
  const sampled = samples.map(({ kind, label, settings, model }): [string, ProviderPaths] => {
    const provider = findProviderKind(kind)?.configure({ ...settings })
    return [label, provider === undefined ? {} : pathsOf(provider, { model, streaming: false })]
  })
  return [...plain, ...sampled].sort(([one], [other]) => (one < other ? -1 : 1))
}

const endpoints: readonly ClientEndpoint[] = Object.keys(operations).filter(isClientEndpoint)

function isClientEndpoint(name: string): name is ClientEndpoint {
  return name !== 'models' && name !== 'passthrough' && name !== 'stored' && name !== 'rerank_v2'
}

function cell(endpoint: ClientEndpoint, paths: ProviderPaths): string {
  if (paths[endpoint] !== undefined) return 'yes'
  const via = translationsFrom(endpoint).find(({ upstream }) => paths[upstream] !== undefined)
  if (via !== undefined) return `→ ${via.upstream}`
  return endpoint === 'count_tokens' ? 'estimate' : ''
}

/** The calls of clients by provider, as Markdown, from the tables that serve them. */
export function renderProviderMatrix(): string {
  const head = `| Provider | ${endpoints.map((endpoint) => operations[endpoint].api).join(' | ')} |`
  const lines = rows().map(
    ([label, paths]) => `| ${label} | ${endpoints.map((endpoint) => cell(endpoint, paths)).join(' | ')} |`,
  )
  return `# Calls by provider

Generated from the tables of the gateway. Columns are values of \`llm.api\`.

| Cell | Meaning |
|---|---|
| yes | sent in the API of the client |
| → name | translated to that API of the provider, as far as its fields have a counterpart |
| estimate | answered by the gateway, marked as an estimate |
| empty | refused with 400 \`unsupported_endpoint\`, and the names of providers that have the call |

${head}
|${'---|'.repeat(endpoints.length + 1)}
${lines.join('\n')}
`
}
