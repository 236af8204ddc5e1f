import { clientNetwork } from '../lib/address/client-network.ts'
import type { Node } from './ast.ts'
import { hasProperties, type Variables } from './closures/representation.ts'
import { callsVariables, referencesField } from './references.ts'
import { spendWork } from './work-budget.ts'

/** Creates a variable from the slots of the facts; undefined if it has no value. */
type Derive = (variables: Variables) => unknown

/**
 * Compiles the derived variables that an expression references, at no cost to other expressions: `now` from
 * `clock`, both spellings of the results of services, and members computed from other slots, such as
 * `request.uri` and `llm.inputTokens`.
 */
export function compileDerivedVariables(
  node: Node,
  roots: ReadonlySet<string>,
): ((variables: Variables) => Variables) | undefined {
  const derived = [...roots].flatMap((root): [string, Derive][] => {
    const derive = compileRoot(node, root)
    return derive === undefined ? [] : [[root, derive]]
  })
  if (derived.length === 0) return undefined
  const given = [...roots].filter((root) => !derived.some(([name]) => name === root))
  return (variables) => {
    const values: Record<string, unknown> = {}
    for (const root of given) if (Object.hasOwn(variables, root)) values[root] = variables[root]
    for (const [root, derive] of derived) values[root] = derive(variables)
    return values
  }
}

function compileRoot(node: Node, root: string): Derive | undefined {
  const whole = wholeVariables.get(root)
  if (whole !== undefined) return whole
  const readsAll = callsVariables(node)
  const found = members.filter(
    (member) => member.root === root && (readsAll || referencesField(node, root, member.name)),
  )
  if (found.length === 0) return undefined
  return (variables) => {
    const base = variables[root]
    if (!hasProperties(base)) return base
    const copy: Record<string, unknown> = { ...base }
    for (const { name, make } of found) {
      if (copy[name] === undefined) copy[name] = make(base, variables)
    }
    return copy
  }
}

const wholeVariables: ReadonlyMap<string, Derive> = new Map<string, Derive>([
  ['now', ({ clock }) => (isClock(clock) ? new Date(clock.now()) : undefined)],
  ['extauthz', ({ extAuthz }) => extAuthz],
  ['extproc', ({ extProc }) => extProc],
  ['proxy', ({ route }) => proxyOf(route)],
  ['backend', ({ route }) => backendOf(route)],
])

type DerivedMember = {
  readonly root: string
  readonly name: string
  make(base: Variables, variables: Variables): unknown
}

const members: readonly DerivedMember[] = [
  { root: 'request', name: 'pathAndQuery', make: ({ path, query }) => `${path}${query}` },
  {
    root: 'request',
    name: 'uri',
    make: ({ scheme, host, path, query }) => `${scheme}://${host}${path}${query}`,
  },
  { root: 'request', name: 'startTime', make: ({ arrivedAt }) => timeOf(arrivedAt) },
  // The end of a request is the time of the evaluation.
  {
    root: 'request',
    name: 'endTime',
    make: (_, { clock }) => (isClock(clock) ? new Date(clock.now()) : undefined),
  },
  { root: 'request', name: 'body', make: (_, { body }) => body },
  { root: 'jwt', name: 'rawToken', make: (_, { token }) => token },
  { root: 'apiKey', name: 'key', make: (_, { key }) => key },
  { root: 'response', name: 'grpcStatus', make: grpcStatusOf },
  { root: 'mcp', name: 'methodName', make: ({ method }) => method },
  {
    root: 'llm',
    name: 'prompt',
    make: (_, { llmRequest, llmTexts }) => propertyOf(llmTexts, 'prompt') ?? promptOf(llmRequest),
  },
  { root: 'llm', name: 'completion', make: (_, { llmTexts }) => propertyOf(llmTexts, 'completion') },
  { root: 'llm', name: 'params', make: (_, { llmRequest }) => parametersOf(llmRequest) },
  {
    root: 'source',
    name: 'network',
    make: ({ address }) => (typeof address === 'string' ? clientNetwork(address) : undefined),
  },
  ...[
    ...['inputTokens', 'outputTokens', 'totalTokens', 'cachedInputTokens', 'cacheCreationInputTokens'],
    ...['reasoningTokens', 'inputAudioTokens', 'outputAudioTokens'],
  ].map((name) => ({
    root: 'llm',
    name,
    make: (_: Variables, { usage }: Variables) => propertyOf(usage, name),
  })),
]

function propertyOf(value: unknown, name: string): unknown {
  return hasProperties(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** Names of the listener and the route of a request: `default/public` is a listener of a gateway. */
function proxyOf(route: unknown): object | undefined {
  if (!hasProperties(route)) return undefined
  const [gateway = '', listener] = String(propertyOf(route, 'listener') ?? '').split('/')
  return {
    gateway: { name: gateway },
    listener: { name: listener ?? gateway },
    route: { name: propertyOf(route, 'name') },
  }
}

function backendOf(route: unknown): object | undefined {
  if (!hasProperties(route)) return undefined
  const traffic = propertyOf(route, 'traffic')
  if (traffic === 'llm') return { type: 'ai', protocol: 'llm' }
  return traffic === 'mcp' ? { type: 'mcp', protocol: 'mcp' } : { type: 'static', protocol: 'http' }
}

/** Messages of an LLM request with their texts. */
function promptOf(request: unknown): object[] | undefined {
  const messages = propertyOf(request, 'messages')
  if (!Array.isArray(messages)) return undefined
  spendWork(messages.length * 500)
  return messages.map((message) => ({
    role: propertyOf(message, 'role'),
    content: textOf(propertyOf(message, 'content')),
  }))
}

function textOf(content: unknown): string | undefined {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : undefined
  const texts = content.map((part) => propertyOf(part, 'text')).filter((text) => typeof text === 'string')
  for (const text of texts) spendWork(100 + text.length)
  return texts.join('')
}

const parameterNames = [
  ...['temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'seed', 'max_tokens'],
  ...['encoding_format', 'dimensions'],
]

/** Parameters of the model in an LLM request. */
function parametersOf(request: unknown): object | undefined {
  if (!hasProperties(request)) return undefined
  return Object.fromEntries(parameterNames.map((name) => [name, propertyOf(request, name)]))
}

/** `grpc-status` of a response without a message; the status of others follows their messages. */
function grpcStatusOf({ headers }: Variables): number | undefined {
  const status = propertyOf(headers, 'grpc-status')
  return typeof status === 'string' && /^\d{1,3}$/.test(status) ? Number(status) : undefined
}

function timeOf(milliseconds: unknown): Date | undefined {
  return typeof milliseconds === 'number' ? new Date(milliseconds) : undefined
}

function isClock(value: unknown): value is { now(): number } {
  return hasProperties(value) && typeof value['now'] === 'function'
}
