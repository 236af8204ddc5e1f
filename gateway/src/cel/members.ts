import { nearest } from '../lib/nearest.ts'

/** Members of a variable: `leaf` has none, `any` has those of the data. */
export type Members = 'leaf' | 'any' | { readonly [name: string]: Members }

const item = { name: 'leaf', target: 'leaf' } as const

/** Variables with a fixed set of members. Others, such as `jwt`, have the members of their data. */
const fixedMembers: { readonly [root: string]: Members } = {
  request: {
    method: 'leaf',
    scheme: 'leaf',
    host: 'leaf',
    path: 'leaf',
    query: 'leaf',
    pathAndQuery: 'leaf',
    uri: 'leaf',
    version: 'leaf',
    headers: 'any',
    startTime: 'any',
  },
  source: {
    address: 'leaf',
    network: 'leaf',
    port: 'leaf',
    rawAddress: 'leaf',
    rawPort: 'leaf',
    certificate: 'leaf',
    issuer: 'leaf',
    subject: 'leaf',
    subjectCn: 'leaf',
    subjectAltNames: 'any',
    spiffeId: 'leaf',
    connectHeaders: 'any',
    identity: { trustDomain: 'leaf', namespace: 'leaf', serviceAccount: 'leaf' },
    tls: {
      version: 'leaf',
      cipherSuite: 'leaf',
      serverName: 'leaf',
      identity: 'leaf',
      subjectAltNames: 'any',
      subject_alt_names: 'any',
    },
  },
  destination: { address: 'leaf', port: 'leaf', hostname: 'leaf' },
  response: { code: 'leaf', headers: 'any', grpcStatus: 'leaf' },
  proxy: { gateway: { name: 'leaf' }, listener: { name: 'leaf' }, route: { name: 'leaf' } },
  backend: { type: 'leaf', protocol: 'leaf' },
  basicAuth: { username: 'leaf' },
  a2a: { method: 'leaf', taskId: 'leaf', contextId: 'leaf' },
  ui: { change: 'leaf' },
  llm: {
    operation: 'leaf',
    api: 'leaf',
    requestModel: 'leaf',
    streaming: 'leaf',
    prompt: 'any',
    params: 'any',
  },
  mcp: {
    methodName: 'leaf',
    method: 'leaf',
    tool: { ...item, arguments: 'any' },
    prompt: item,
    resource: item,
  },
}

/** Members that only some policies offer, with the reason for their absence in others. */
const unavailableMembers: ReadonlyMap<string, string> = new Map([
  [
    'request.body',
    'it is available in authorization and rate limits of HTTP and LLM routes; arguments of MCP tools are mcp.tool.arguments in mcpAuthorization',
  ],
  ['request.endTime', 'it is available only after the response'],
  ['response.body', 'it is available in transformations of responses'],
  [
    'backend.name',
    'the destination is chosen after the expression; backend.type and proxy.route.name are available',
  ],
  ['llm.completion', 'it is available in logs and traces; transformations of responses have response.body'],
  ['mcp.tool.result', 'it is available only in logs and traces'],
  ['mcp.tool.error', 'it is available only in logs and traces'],
  ...['configuredModel', 'provider', 'responseModel', 'cache', 'cost', 'costStatus'].map(afterResponse),
  ...['inputTokens', 'outputTokens', 'totalTokens', 'cachedInputTokens'].map(afterResponse),
  ...['cacheCreationInputTokens', 'reasoningTokens', 'inputAudioTokens', 'outputAudioTokens'].map(
    afterResponse,
  ),
])

function afterResponse(name: string): [string, string] {
  return [`llm.${name}`, 'it is available only after the response']
}

/** Names of members in other products, with the name used here. */
const synonyms: ReadonlyMap<string, string> = new Map([
  ['request.url', 'request.uri'],
  ['request.pathQuery', 'request.pathAndQuery'],
  ['request.time', 'request.startTime'],
  ['request.timestamp', 'request.startTime'],
  ['response.status', 'response.code'],
  ['response.statusCode', 'response.code'],
  ['source.ip', 'source.address'],
  ['mcp.name', 'mcp.tool.name'],
  ['llm.model', 'llm.requestModel'],
  ['llm.stream', 'llm.streaming'],
])

/**
 * Returns the members of a variable. `known` lists the variables of the expression; a dotted name in it, such
 * as `llm.cost` or `mcp.tool.result`, is an additional member.
 */
export function membersOf(root: string, known: ReadonlySet<string>): Members {
  const usual = Object.hasOwn(fixedMembers, root) ? fixedMembers[root] : undefined
  if (usual === undefined) return 'any'
  return [...known].reduce(
    (members, name) =>
      name.startsWith(`${root}.`) ? withMember(members, name, name.split('.').slice(1)) : members,
    usual,
  )
}

/** Additional members with the members of their data. */
const openMembers: ReadonlySet<string> = new Set(['llm.completion', 'mcp.tool.result', 'mcp.tool.error'])

/** Adds a member by its full name and its path. */
function withMember(members: Members, fullName: string, [name = '', ...rest]: readonly string[]): Members {
  if (typeof members === 'string') return members
  if (rest.length === 0) return { ...members, [name]: openMembers.has(fullName) ? 'any' : 'leaf' }
  const inner = Object.hasOwn(members, name) ? members[name] : undefined
  return inner === undefined ? members : { ...members, [name]: withMember(inner, fullName, rest) }
}

export type FoundMember = { kind: 'member'; members: Members } | { kind: 'missing'; message: string }

/**
 * Resolves a member to its own members, or to an error message. `path` is the path of `members`: `mcp.tool`.
 */
export function memberOf(members: Members, path: string, name: string): FoundMember {
  if (members === 'any') return { kind: 'member', members }
  if (members === 'leaf') return { kind: 'missing', message: `${path} has no members, so no "${name}"` }
  const found = Object.hasOwn(members, name) ? members[name] : undefined
  if (found !== undefined) return { kind: 'member', members: found }
  return { kind: 'missing', message: `unknown member "${path}.${name}"; ${hintFor(members, path, name)}` }
}

function hintFor(members: object, path: string, name: string): string {
  const reason = unavailableMembers.get(`${path}.${name}`)
  if (reason !== undefined) return reason
  const names = Object.keys(members)
  const nearestName = nearest(name, names)
  const meant =
    synonyms.get(`${path}.${name}`) ?? (nearestName === undefined ? undefined : `${path}.${nearestName}`)
  return meant === undefined ? `${path} has ${names.join(', ')}` : `did you mean "${meant}"?`
}
