import { isIP } from 'node:net'
import { isSocketAddress } from '../../lib/address/socket-path.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { isMetadataAddress } from '../../net/egress/metadata-addresses.ts'
import { childShapes, type Shape } from '../../schema/shape.ts'
import { type Kind, shapesOf } from '../kinds.ts'
import { machineIdentitiesIn } from './machine-identities.ts'

/** `config.storage`: content that values from the API may have. */
export type Allowances = {
  readonly allowStdioTargets?: boolean | undefined
  readonly allowFilePaths?: boolean | undefined
  readonly allowMetadataAddresses?: boolean | undefined
  readonly allowMachineIdentity?: boolean | undefined
}

/**
 * Reason why the API must not accept a value, or undefined. Clients of the API could otherwise run programs,
 * read local files, make the gateway fetch cloud credentials from link-local addresses, or send tokens of its
 * own identity to them.
 */
export function findRestriction(
  kind: Kind,
  name: string,
  value: JsonValue,
  { allowStdioTargets, allowFilePaths, allowMetadataAddresses, allowMachineIdentity }: Allowances,
): string | undefined {
  // Keys have no destinations, and there are many.
  if (kind.placement.kind === 'keys') return undefined
  // The name of a policy determines its members.
  const place = kind.placement.kind === 'policies' ? [name] : []
  let reason: string | undefined
  const visit = (here: JsonValue | undefined, shapes: readonly Shape[], steps: readonly string[]): void => {
    if (reason !== undefined || here === undefined || here === null) return
    // Free JSON is not configuration: bodies, documents, metadata of keys.
    if (shapes.length > 0 && shapes.every((shape) => shape.kind === 'any')) return
    if (typeof here === 'string') {
      if (allowFilePaths !== true && isFilePath([...place, ...steps])) {
        reason = hint('files of this machine', 'allowFilePaths', steps)
      } else if (isSocket([...place, ...steps], here)) {
        reason = `${placeOf(steps)}: ${socketsRestriction}`
      } else if (allowMetadataAddresses !== true && isMetadataUrl(here)) {
        reason = hint('link-local or metadata addresses', 'allowMetadataAddresses', steps)
      }
      return
    }
    if (typeof here !== 'object') return
    if (Array.isArray(here)) {
      for (const item of here) visit(item, childShapes(shapes, 0), [...steps, '[]'])
      return
    }
    for (const [key, entry] of Object.entries(here)) {
      if (key === 'stdio' && allowStdioTargets !== true && isTarget(shapes)) {
        reason = hint('programs to run', 'allowStdioTargets', [...steps, key])
        return
      }
      visit(entry, childShapes(shapes, key), [...steps, key])
    }
  }
  visit(value, shapesOf(kind, name), [])
  if (reason !== undefined || allowMachineIdentity === true) return reason
  const [identity] = machineIdentitiesIn(value, shapesOf(kind, name))
  return identity && hint(machineIdentities, 'allowMachineIdentity', identity.path.map(String))
}

/** Restricted credentials in messages. */
export const machineIdentities = 'identities of this machine at a cloud'

/** Reason of a rejected Unix domain socket. There is no permission: sockets control this machine. */
export const socketsRestriction =
  'Unix domain sockets cannot be set through the API: only the configuration file may name them'

/** Whether a string at this path of a value is the address of a Unix domain socket. */
export function isSocket(steps: readonly string[], text: string): boolean {
  return steps.at(-1) === 'host' && isSocketAddress(text)
}

function placeOf(steps: readonly string[]): string {
  return ['value', ...steps].join('.').replaceAll('.[]', '[]').slice(0, 200)
}

function hint(what: string, setting: string, steps: readonly string[]): string {
  return `${placeOf(steps)}: ${what} cannot be set through the API unless the file has config.storage.${setting}: true`
}

function isTarget(shapes: readonly Shape[]): boolean {
  return shapes.length === 0 || shapes.some((shape) => shape.kind === 'object' && shape.fields.has('stdio'))
}

const tlsFiles = new Set(['cert', 'key', 'root'])

/**
 * Whether a string at this path of a value names a file: `file` of secrets, key sets, documents and catalogs,
 * and certificates in `tls` and `backendTLS`.
 */
export function isFilePath(steps: readonly string[]): boolean {
  const last = steps.at(-1)
  if (last === undefined) return false
  if (last === 'file') return true
  return tlsFiles.has(last) && /^(?:backend)?tls$/i.test(steps.at(-2) ?? '')
}

/** Whether a text, in any notation of addresses, refers to a metadata service. */
export function isMetadataUrl(text: string): boolean {
  const host = hostOf(text.trim())
  if (host === undefined) return false
  if (/(?:^|\.)metadata\.goog(?:le\.internal)?$/.test(host)) return true
  return isIP(host) !== 0 && isMetadataAddress(host)
}

const schemeForm = /^(?:(?:https?|wss?|ftp):[\\/]*|[a-z][a-z0-9+.-]*:\/\/)/i

/** Host in the canonical form of URLs, which resolves decimal, octal and mapped forms of an address. */
function hostOf(text: string): string | undefined {
  // URL parsers ignore these characters as well.
  const [authority = ''] = text
    .replace(/[\t\r\n]/g, '')
    .replace(schemeForm, '')
    .split(/[/\\?#]/, 1)
  const bare = authority.slice(authority.lastIndexOf('@') + 1)
  const zone = bare.indexOf('%')
  const withoutZone = zone < 0 ? bare : bare.slice(0, zone)
  const end = zone < 0 ? -1 : bare.indexOf(']', zone)
  const plain = end < 0 ? bare : withoutZone + bare.slice(end)
  const host = URL.parse(`http://${isIP(withoutZone) === 6 ? `[${withoutZone}]` : plain}`)?.hostname
  return host === '' ? undefined : host?.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}
