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
  source: { address: 'leaf', network: 'leaf', port: 'leaf' },
  basicAuth: { username: 'leaf' },
  ui: { change: 'leaf' },
  llm: { operation: 'leaf', api: 'leaf', requestModel: 'leaf', streaming: 'leaf' },
  mcp: { method: 'leaf', tool: { ...item, arguments: 'any' }, prompt: item, resource: item },
}

/** Members that only some policies offer, with the reason for their absence in others. */
const unavailableMembers: ReadonlyMap<string, string> = new Map([
  [
    'request.body',
    'it is available in authorization and rate limits of HTTP and LLM routes; arguments of MCP tools are mcp.tool.arguments in mcpAuthorization',
  ],
  ['request.endTime', 'rules run before the response'],
  ...['configuredModel', 'provider', 'responseModel', 'cost', 'costStatus'].map(afterResponse),
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
  ['source.ip', 'source.address'],
  ['mcp.methodName', 'mcp.method'],
  ['mcp.name', 'mcp.tool.name'],
  ['llm.model', 'llm.requestModel'],
  ['llm.stream', 'llm.streaming'],
])

/**
 * Returns the members of a variable. `known` lists the variables of the expression; a dotted name in it, such
 * as `llm.cost`, is an additional member.
 */
export function membersOf(root: string, known: ReadonlySet<string>): Members {
  const usual = Object.hasOwn(fixedMembers, root) ? fixedMembers[root] : undefined
  if (usual === undefined || typeof usual === 'string') return usual ?? 'any'
  const added = [...known].flatMap((name): [string, Members][] =>
    name.startsWith(`${root}.`) ? [[name.slice(root.length + 1), 'leaf']] : [],
  )
  return added.length === 0 ? usual : { ...usual, ...Object.fromEntries(added) }
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
