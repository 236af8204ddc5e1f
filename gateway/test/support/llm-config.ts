import type { GatewayConfig } from './gateway.ts'
import { anthropicKey } from './mock-anthropic.ts'
import { openAiKey } from './mock-openai.ts'

/** The virtual key most tests use. */
export const aliceKey = 'tg-canary-alice-4c81'

export const aliceRecord = {
  key: aliceKey,
  metadata: { id: 'key-alice', name: 'Alice', user: 'alice', group: 'platform' },
}

type Upstreams = { openai?: { url: string }; anthropic?: { url: string } }

/** Models as a user would list them: two providers behind patterns, and `echo`. */
export function models({ openai, anthropic }: Upstreams): object[] {
  return [
    ...(openai ? [openAiModel('gpt-*', openai.url), openAiModel('text-embedding-*', openai.url)] : []),
    ...(anthropic ? [anthropicModel('claude-*', anthropic.url)] : []),
    { name: 'echo', provider: 'echo' },
  ]
}

export function openAiModel(name: string, url: string, more: object = {}): object {
  return { name, provider: 'openai', params: { baseUrl: `${url}/v1`, apiKey: openAiKey }, ...more }
}

export function anthropicModel(name: string, url: string, more: object = {}): object {
  return { name, provider: 'anthropic', params: { baseUrl: url, apiKey: anthropicKey }, ...more }
}

/** The usual config of a test: those models, and a strict virtual key. */
export function llmConfig(
  upstreams: Upstreams,
  { policies, ...llm }: Record<string, unknown> & { policies?: object } = {},
): GatewayConfig {
  const apiKey = { mode: 'strict', keys: [aliceRecord] }
  return { llm: { models: models(upstreams), policies: { apiKey, ...policies }, ...llm } }
}

/** Headers of a JSON request with the usual virtual key. */
export const jsonHeaders = { 'content-type': 'application/json', authorization: `Bearer ${aliceKey}` }

/** A chat completion by plain fetch, for tests that look at the wire. */
export function chat(
  gateway: { url: string },
  body: object = {},
  init: { headers?: Record<string, string>; signal?: AbortSignal; path?: string } = {},
): Promise<Response> {
  const { headers, signal, path = '/v1/chat/completions' } = init
  return fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { ...jsonHeaders, ...headers },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }], ...body }),
    ...(signal && { signal }),
  })
}
