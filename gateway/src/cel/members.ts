import { nearest } from '../lib/nearest.ts'

/** Members of a variable: `leaf` has none of its own, `any` has those of the data. */
export type Members = 'leaf' | 'any' | { readonly [name: string]: Members }

const item = { name: 'leaf', target: 'leaf' } as const

/** Variables whose members are fixed. Others, such as `jwt`, have the members of their data. */
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
  llm: { operation: 'leaf', api: 'leaf', requestModel: 'leaf', streaming: 'leaf' },
  mcp: { method: 'leaf', tool: { ...item, arguments: 'any' }, prompt: item, resource: item },
}

/** Members that exist in some places only, and the reason for their absence elsewhere. */
const unavailableMembers: ReadonlyMap<string, string> = new Map([
  [
    'request.body',
    'it exists in authorization and rate limits of HTTP and LLM routes; arguments of MCP tools are mcp.tool.arguments in mcpAuthorization',
  ],
  ['request.endTime', 'rules run before the answer'],
  ...['configuredModel', 'provider', 'responseModel', 'cost', 'costStatus'].map(afterResponse),
  ...['inputTokens', 'outputTokens', 'totalTokens', 'cachedInputTokens'].map(afterResponse),
  ...['cacheCreationInputTokens', 'reasoningTokens', 'inputAudioTokens', 'outputAudioTokens'].map(
    afterResponse,
  ),
])

function afterResponse(name: string): [string, string] {
  return [`llm.${name}`, 'it exists after the answer only']
}

/** Names of other products for members that exist here. */
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
 * The members of a variable. `known` are the variables of the expression; a dotted name in it, such as `llm.cost`, is a
 * member that exists in this place beside the usual ones.
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

/** The members of a member, or the message about its absence. `path` is that of `members`, for example `mcp.tool`. */
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
