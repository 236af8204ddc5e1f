import type { Path } from '../../../../../schema/path.ts'
import { secretText } from '../../../../objects/secret-text.ts'
import { fileValue } from '../../../../own-kinds/enumerations.ts'
import { type BasicAuthentication, htpasswdKey } from '../../../../own-kinds/gateway-policy/authentication.ts'
import type { Lookups } from '../../lookups.ts'
import { type FieldKind, fieldOf } from '../field.ts'
import { secretProblem } from '../secret-problem.ts'

const path: Path = ['traffic', 'basicAuthentication']

/** `traffic.basicAuthentication`. */
export const basicAuthField: FieldKind = {
  path: 'traffic.basicAuthentication',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'mostSpecific',
  translate({ traffic }, lookups) {
    const written = traffic?.basicAuthentication
    if (written === undefined) return undefined
    const { mode, realm, location, secretRef } = written
    const { htpasswd, problem } = usersOf(secretRef, lookups)
    const basicAuth = {
      htpasswd,
      ...(mode && { mode: fileValue(mode) }),
      ...(realm !== undefined && { realm }),
      ...(location && { authorizationLocation: location }),
    }
    return { ...fieldOf({ basicAuth }, { place: ['basicAuth'], path, rename }), ...problem }
  },
}

const names: Readonly<Record<string, string>> = {
  htpasswd: 'secretRef',
  authorizationLocation: 'location',
}

function rename([first = '', ...rest]: Path): Path {
  return [names[first] ?? first, ...rest]
}

function usersOf({ key = htpasswdKey, ...reference }: BasicAuthentication['secretRef'], lookups: Lookups) {
  const place = [...path, 'secretRef']
  const found = lookups.secret(reference)
  if (found.kind === 'missing') return { htpasswd: '', problem: secretProblem(found, place) }
  const htpasswd = secretText(found.object, key)
  if (htpasswd !== undefined) return { htpasswd }
  const message = `Secret ${reference.name} has no entry ${key}`
  return { htpasswd: '', problem: secretProblem({ reason: 'InvalidRef', message }, place) }
}
