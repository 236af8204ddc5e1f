import { dirname, resolve } from 'node:path'
import { parseYaml } from '../../../config/yaml/yaml.ts'
import { isLoopbackHost } from '../../../lib/address/host-port.ts'
import type { Clock } from '../../../lib/clock.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { messageOf } from '../../../lib/thrown.ts'
import { AccessError, type ApiAccess } from './access.ts'
import { createFixedToken, createTokenFile, type ReadText, type TokenSource } from './token-file.ts'

/** Fields of a user that change the identity in a way that is not supported, with the fix. */
const unsupportedUserFields: Readonly<Record<string, string>> = {
  exec: 'a credential plug-in is not run: use a client certificate, a token or a service account',
  'auth-provider': 'a credential plug-in is not run: use a client certificate, a token or a service account',
  username: 'basic authentication does not exist in current API servers: use a token',
  as: 'impersonation is not supported: use the credentials of the user itself',
}

/**
 * Reads the current context of a kubeconfig file (YAML or JSON): client certificate, token, authority.
 * Relative paths belong to the folder of the file. Throws `AccessError` for what cannot be used, credential
 * plug-ins among it.
 */
export function readKubeconfig(path: string, readText: ReadText, clock: Clock): ApiAccess {
  const config = parse(path, readText)
  const name = textAt(config, 'current-context')
  if (name === undefined || name === '') throw new AccessError(`${path}: current-context is not set`)
  const context = entry(path, config, 'contexts', name, 'context')
  const cluster = entry(path, config, 'clusters', textAt(context, 'cluster') ?? '', 'cluster')
  const userName = textAt(context, 'user')
  const user = userName === undefined ? {} : entry(path, config, 'users', userName, 'user')
  refuseUnsupported(path, cluster, user)
  const files: Files = { folder: dirname(path), readText }
  const certificate = pemAt(user, 'client-certificate', files)
  const key = pemAt(user, 'client-key', files)
  if ((certificate === undefined) !== (key === undefined))
    throw new AccessError(`${path}: client-certificate and client-key must be set together`)
  const access: ApiAccess = {
    server: serverOf(path, cluster),
    authority: pemAt(cluster, 'certificate-authority', files),
    serverName: textAt(cluster, 'tls-server-name'),
    certificate: certificate === undefined || key === undefined ? undefined : { cert: certificate, key },
    token: tokenOf(user, files, clock),
    namespace: textAt(context, 'namespace'),
  }
  refusePlainCredentials(path, access)
  return access
}

type Files = { readonly folder: string; readonly readText: ReadText }

function parse(path: string, readText: ReadText): JsonObject {
  try {
    const value = parseYaml(readText(path))
    if (isJsonObject(value)) return value
  } catch (error) {
    throw new AccessError(`${path} is not a readable kubeconfig: ${messageOf(error)}`, { cause: error })
  }
  throw new AccessError(`${path} is not a kubeconfig: it must be a YAML map`)
}

/** The named entry of a list: `{ name, <field> }`. */
function entry(path: string, config: JsonObject, list: string, name: string, field: string): JsonObject {
  const entries = config[list]
  const found = Array.isArray(entries)
    ? entries.filter(isJsonObject).find((one) => one['name'] === name)?.[field]
    : undefined
  if (!isJsonObject(found)) throw new AccessError(`${path}: ${list} must contain "${name}"`)
  return found
}

function refuseUnsupported(path: string, cluster: JsonObject, user: JsonObject): void {
  if (cluster['insecure-skip-tls-verify'] === true)
    throw new AccessError(`${path}: insecure-skip-tls-verify is not supported: set certificate-authority`)
  if (cluster['proxy-url'] !== undefined)
    throw new AccessError(`${path}: proxy-url is not supported: use an address without a proxy`)
  for (const [field, fix] of Object.entries(unsupportedUserFields))
    if (user[field] !== undefined) throw new AccessError(`${path}: user.${field}: ${fix}`)
}

function serverOf(path: string, cluster: JsonObject): URL {
  const text = textAt(cluster, 'server')
  const server = text === undefined ? null : URL.parse(text)
  if (server === null || (server.protocol !== 'https:' && server.protocol !== 'http:'))
    throw new AccessError(`${path}: cluster.server must be an https URL`)
  if (server.protocol === 'http:' && !isLoopbackHost(server.hostname))
    throw new AccessError(`${path}: cluster.server must be an https URL unless its host is this machine`)
  return server
}

function refusePlainCredentials(path: string, { server, token, certificate }: ApiAccess): void {
  if (server.protocol === 'https:' || (token === undefined && certificate === undefined)) return
  throw new AccessError(`${path}: credentials are not sent over http: use an https URL`)
}

/** PEM text from `<field>-data` (base64) or from the file that `<field>` names. */
function pemAt(object: JsonObject, field: string, { folder, readText }: Files): string | undefined {
  const data = textAt(object, `${field}-data`)
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64').toString()
  const file = textAt(object, field)
  if (file === undefined || file === '') return undefined
  try {
    return readText(resolve(folder, file))
  } catch (error) {
    throw new AccessError(`${field} is not readable: ${messageOf(error)}`, { cause: error })
  }
}

function tokenOf(user: JsonObject, { folder, readText }: Files, clock: Clock): TokenSource | undefined {
  const file = textAt(user, 'tokenFile')
  if (file !== undefined && file !== '') return createTokenFile(resolve(folder, file), readText, clock)
  const token = textAt(user, 'token')
  return token === undefined || token === '' ? undefined : createFixedToken(token)
}

function textAt(object: JsonObject, field: string): string | undefined {
  const value = object[field]
  return typeof value === 'string' ? value : undefined
}
