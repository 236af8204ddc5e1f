import type { ConfigTree } from '../../config/load/validate.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { valueAt } from '../../schema/path.ts'
import type { Kind } from '../kinds.ts'
import { isTree } from './overlay.ts'

/**
 * The reason why a record must not be stored: it would send a credential of the file to a host, or over a
 * connection, of its own. The data plane denies such requests in every case, also those of other
 * combinations.
 */
export function findInheritedCredential(kind: Kind, value: JsonValue, file: ConfigTree): string | undefined {
  if (!isTree(value) || allowsInheritance(file)) return undefined
  if (kind.name === 'llm.model') return ofModel(value, file)
  return kind.name === 'mcp.target' ? ofTarget(value, file) : undefined
}

function allowsInheritance(file: ConfigTree): boolean {
  return valueAt(file, ['config', 'storage', 'allowFileCredentials']) === true
}

/** A reference to a provider permits neither an address nor a key in `params`. */
function ofModel({ provider, auth, ...model }: ConfigTree, file: ConfigTree): string | undefined {
  const reference = valueAt(provider, ['reference'])
  const providers = valueAt(file, ['llm', 'providers'])
  const shared: unknown = Array.isArray(providers)
    ? providers.find((one) => valueAt(one, ['name']) === reference)
    : undefined
  if (typeof reference !== 'string' || shared === undefined) return undefined
  const hasCredential =
    valueAt(shared, ['params', 'apiKey']) !== undefined || isOwn(valueAt(shared, ['defaults', 'auth']))
  if (!hasCredential || auth !== undefined) return undefined
  const place = ['tls', 'backendTLS', 'backendTunnel'].find((name) => model[name] !== undefined)
  if (place === undefined) return undefined
  return `value.${place}: the credential of provider "${reference}" is sent over connections of the file only: remove it, or set auth in this model, ${permission}`
}

function ofTarget({ policies, ...target }: ConfigTree, file: ConfigTree): string | undefined {
  const servers = [target['mcp'], target['sse'], target['openapi']]
  // Only the file has named backends.
  const hasHost = servers.some((server) => isTree(server) && server['backend'] === undefined)
  if (!hasHost || !isOwn(valueAt(file, ['mcp', 'policies', 'backendAuth']))) return undefined
  const own = ['backendAuth', 'oauth'].some((name) => valueAt(policies, [name]) !== undefined)
  if (own) return undefined
  return `value.policies.backendAuth: must be set, because the credential in mcp.policies of the file is sent to targets of the file only, ${permission}`
}

const permission = 'unless the file has config.storage.allowFileCredentials: true'

/** Whether authentication uses a credential of the gateway. */
function isOwn(auth: unknown): boolean {
  if (!isTree(auth)) return false
  return Object.keys(auth).some((name) => name !== 'passthrough' && name !== 'location')
}
