import type { RequestDetails } from '../../ledger/query/search/search.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { dollarsOf } from '../../lib/picodollars.ts'
import type { CelScope } from './scopes.ts'

/** Values of variables, and the variables without a recorded value. */
export type CelFacts = { readonly facts: JsonObject; readonly missing: readonly string[] }

const sample: JsonObject = {
  request: {
    method: 'POST',
    scheme: 'https',
    host: 'gateway.example.com',
    path: '/v1/chat/completions',
    query: '',
    version: 'HTTP/1.1',
    headers: { 'content-type': 'application/json', 'user-agent': 'example/1.0', 'x-team': 'search' },
  },
  source: { address: '203.0.113.7', port: 50_123 },
  jwt: {
    sub: 'ada',
    email: 'ada@example.com',
    groups: ['platform', 'admins'],
    iss: 'https://id.example.com',
  },
  basicAuth: { username: 'ada' },
  ui: { change: true },
  apiKey: { id: '00000000-0000-4000-8000-000000000000', name: 'ada', user: 'ada', group: 'search' },
  destination: { address: '192.0.2.1', port: 443, hostname: 'gateway.example.com' },
  proxy: { gateway: { name: 'default' }, listener: { name: 'default' }, route: { name: 'api' } },
  backend: { type: 'static', protocol: 'http' },
  metadata: { plan: 'gold' },
  a2a: { method: 'message/send' },
  extAuthz: { user: 'ada' },
  extauthz: { user: 'ada' },
  extProc: { category: 'search' },
  extproc: { category: 'search' },
  llmRequest: {
    model: 'gpt-5-mini',
    messages: [{ role: 'user', content: 'Hello' }],
    max_tokens: 256,
    temperature: 0.2,
  },
  llm: { operation: 'chat', api: 'chat_completions', requestModel: 'gpt-5-mini', streaming: false },
  mcp: {
    method: 'tools/call',
    tool: { name: 'echo', target: 'everything', arguments: { message: 'Hello' } },
  },
}

const responseSample: JsonObject = {
  configuredModel: 'gpt-5-mini',
  provider: 'openai',
  responseModel: 'gpt-5-mini-2026-01-01',
  cost: 0.00042,
  inputTokens: 12,
  outputTokens: 34,
  totalTokens: 46,
  cachedInputTokens: 0,
  cacheCreationInputTokens: 0,
  reasoningTokens: 0,
}

/** Sample facts of a scope. */
export function sampleFacts({ variables }: CelScope): CelFacts {
  return {
    facts: limited({ ...sample, llm: withMembers(sample['llm'], responseSample) }, variables),
    missing: [],
  }
}

/** Facts of a recorded request. The ledger has neither headers nor claims, and no body without payloads. */
export function recordedFacts({ variables }: CelScope, { entry, payload }: RequestDetails): CelFacts {
  const { client, userAgent, tokens, costPicodollars } = entry
  const facts: Record<string, JsonValue | undefined> = {
    request: defined({
      method: entry.method,
      path: entry.path,
      query: '',
      version: 'HTTP/1.1',
      headers: defined({ 'user-agent': userAgent }),
    }),
    source: { address: client, port: 0 },
    apiKey:
      entry.keyId === undefined
        ? undefined
        : defined({ id: entry.keyId, name: entry.keyName, user: entry.user, group: entry.group }),
    llmRequest: payload?.request === undefined ? undefined : promptOf(payload.request, entry.requestModel),
    llm:
      entry.kind === 'llm'
        ? defined({
            operation: entry.operation,
            requestModel: entry.requestModel,
            streaming: entry.streaming,
            provider: entry.provider,
            responseModel: entry.servedModel,
            cost: costPicodollars === undefined ? undefined : dollarsOf(costPicodollars),
            inputTokens: tokens?.input,
            outputTokens: tokens?.output,
            totalTokens: tokens?.total,
            cachedInputTokens: tokens?.cachedInput,
            cacheCreationInputTokens: tokens?.cacheCreationInput,
            reasoningTokens: tokens?.reasoning,
          })
        : undefined,
    mcp: entry.mcpMethod === undefined ? undefined : mcpOf(entry.mcpMethod, entry),
  }
  const limitedFacts = limited(defined(facts), variables)
  const roots = [...variables].filter((name) => !name.includes('.') && name !== 'now')
  const missing = roots.filter((name) => limitedFacts[name] === undefined)
  return { facts: limitedFacts, missing: [...missing, 'request.headers', 'request.host'] }
}

function mcpOf(
  method: string,
  { mcpItem, mcpTarget }: { readonly mcpItem: string | undefined; readonly mcpTarget: string | undefined },
): JsonObject {
  if (mcpItem === undefined) return { method }
  const item = defined({ name: mcpItem, target: mcpTarget })
  const kind = method.startsWith('prompts/')
    ? 'prompt'
    : method.startsWith('resources/')
      ? 'resource'
      : 'tool'
  return { method, [kind]: item }
}

/** The prompt of the ledger is a text, redacted and truncated. */
function promptOf(text: string, model: string | undefined): JsonObject {
  const message: JsonObject = { role: 'user', content: text }
  return { ...(model === undefined ? {} : { model }), messages: [message] }
}

/** The facts of known variables, and of `llm` only the members of the scope. */
function limited(facts: JsonObject, variables: ReadonlySet<string>): JsonObject {
  const own = Object.entries(facts).filter(([name]) => variables.has(name))
  const always = new Set(['operation', 'api', 'requestModel', 'streaming'])
  return Object.fromEntries(
    own.map(([name, value]) => {
      if (name !== 'llm' || typeof value !== 'object' || value === null || Array.isArray(value))
        return [name, value]
      const members = Object.entries(value).filter(
        ([member]) => always.has(member) || variables.has(`llm.${member}`),
      )
      return [name, Object.fromEntries(members)]
    }),
  )
}

function withMembers(value: JsonValue | undefined, members: JsonObject): JsonObject {
  return { ...(value as JsonObject), ...members }
}

function defined(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const present = Object.entries(members).filter(
    (entry): entry is [string, JsonValue] => entry[1] !== undefined,
  )
  return Object.fromEntries(present)
}
