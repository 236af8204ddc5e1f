import type { Config } from '../../config/schema.ts'
import { valueAt } from '../../schema/path.ts'
import type { ObjectKey } from '../objects/meta.ts'

/**
 * The object of a part of a translated configuration, `<kind>/<namespace>/<name>`, by the names that
 * translations assign. Undefined for parts without an object.
 */
export function objectOf(
  config: Config,
  path: readonly (string | number)[],
  gateway: ObjectKey | undefined,
): string | undefined {
  const [section, item] = path
  if (section === 'gateways') return gateway === undefined ? undefined : `Gateway/${gateway}`
  if (section !== 'routes' && section !== 'tcpRoutes' && section !== 'backends') return undefined
  const name = item === undefined ? undefined : valueAt(config, [section, item, 'name'])
  return typeof name === 'string' ? objectPattern.exec(name)?.[1] : undefined
}

/** `HTTPRoute/<namespace>/<name>/<rule>@<listener>`, `Service/<namespace>/<name>:<port>`. */
const objectPattern = /^(?:unresolved\/)?([A-Za-z]+\/[^/]+\/[^/:@]+)/
