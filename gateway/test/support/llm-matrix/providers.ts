import { awsKey, googleAccessToken, type Vendor, vendorKey } from '../vendors/vendor.ts'

/** A row of the matrix: a provider, or the models of one that have an API of their own. */
export type ProviderRow = {
  /** Its name in the tables. */
  readonly label: string
  readonly provider: string
  /** Name of the model at the vendor. */
  readonly model: string
  readonly params: (url: string) => object
  readonly auth?: object
}

const key = { apiKey: vendorKey }
const withVersion = (url: string) => ({ baseUrl: `${url}/v1`, ...key })
const aws = { aws: awsKey }

const copilot = (model: string, models: string): ProviderRow => ({
  label: `copilot, ${models}`,
  provider: 'copilot',
  model,
  params: (url) => ({ baseUrl: url }),
})

const preset = (provider: string, model: string): ProviderRow => ({
  label: provider,
  provider,
  model,
  params: withVersion,
})

const azure = (url: string, azureResourceType: string) => ({
  ...{ azureResourceName: 'contoso', azureResourceType, baseUrl: url },
  ...key,
})
const vertex = (url: string) => ({ vertexProject: 'team', baseUrl: url, apiKey: googleAccessToken })
const bedrock = (url: string) => ({ awsRegion: 'eu-central-1', baseUrl: url })

/** Providers whose conversations, features and errors are tested; at least one for each API of vendors. */
export const testedRows: readonly ProviderRow[] = [
  preset('openai', 'gpt-5'),
  { ...preset('openai', 'gpt-5-pro'), label: 'openai, Pro' },
  {
    label: 'anthropic',
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    params: (url) => ({ baseUrl: url, ...key }),
  },
  {
    label: 'azure',
    provider: 'azure',
    model: 'gpt-4.1',
    params: (url) => azure(url, 'openAI'),
  },
  {
    label: 'azure, Claude',
    provider: 'azure',
    model: 'claude-sonnet-4-5',
    params: (url) => azure(url, 'foundry'),
  },
  {
    label: 'gemini',
    provider: 'gemini',
    model: 'gemini-3-pro',
    params: (url) => ({ baseUrl: url, ...key }),
  },
  { label: 'vertex, Gemini', provider: 'vertex', model: 'google/gemini-3-pro', params: vertex },
  { label: 'vertex, Claude', provider: 'vertex', model: 'claude-sonnet-4-5@20250929', params: vertex },
  {
    label: 'bedrock',
    provider: 'bedrock',
    model: 'eu.amazon.nova-pro-v1:0',
    params: bedrock,
    auth: aws,
  },
  {
    label: 'bedrock, Claude',
    provider: 'bedrock',
    model: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    params: bedrock,
    auth: aws,
  },
  {
    label: 'cohere',
    provider: 'cohere',
    model: 'command-a-03-2025',
    params: (url) => ({ baseUrl: `${url}/compatibility/v1`, ...key }),
  },
  preset('mistral', 'mistral-large-latest'),
  preset('deepseek', 'deepseek-chat'),
  preset('cerebras', 'llama-4-scout'),
  preset('custom', 'local-model'),
]

/** Models of calls beside conversations, and providers that differ from tested ones in their calls only. */
const otherRows: readonly ProviderRow[] = [
  { label: 'vertex, embeddings', provider: 'vertex', model: 'text-embedding-005', params: vertex },
  {
    label: 'bedrock, embeddings',
    provider: 'bedrock',
    model: 'amazon.titan-embed-text-v2:0',
    params: bedrock,
    auth: aws,
  },
  {
    label: 'bedrock, rerank',
    provider: 'bedrock',
    model: 'cohere.rerank-v3-5:0',
    params: bedrock,
    auth: aws,
  },
  copilot('gpt-4.1', 'GPT-4'),
  copilot('gpt-5.3-codex', 'GPT-5'),
  copilot('claude-sonnet-4.5', 'Claude'),
  copilot('text-embedding-3-small', 'embeddings'),
  { label: 'echo', provider: 'echo', model: 'echo', params: () => ({}) },
  ...['baseten', 'deepinfra', 'fireworks', 'groq', 'huggingface', 'jina', 'ollama'].map((name) =>
    preset(name, 'm'),
  ),
  ...['openrouter', 'togetherai', 'xai'].map((name) => preset(name, 'm')),
]

export const allRows: readonly ProviderRow[] = [...testedRows, ...otherRows].sort((one, other) =>
  one.label < other.label ? -1 : 1,
)

/** Name of a row's model for clients. */
export function modelOf({ label }: ProviderRow): string {
  return label.toLowerCase().replace(', ', '-')
}

/** The row as an item of `llm.models`. */
export function modelConfig(row: ProviderRow, { url }: Pick<Vendor, 'url'>): object {
  const { provider, model, params, auth } = row
  return { name: modelOf(row), provider, params: { model, ...params(url) }, ...(auth && { auth }) }
}
