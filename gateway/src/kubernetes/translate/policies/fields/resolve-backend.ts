import { formatPath, type Path } from '../../../../schema/path.ts'
import type { BackendReference } from '../../../objects/gateway-api.ts'
import type { Lookups } from '../lookups.ts'
import type { Field } from './field.ts'

/** A reference of a policy to HTTP servers, as a reference in the Config. */
export type ResolvedBackend = Pick<Field, 'backends' | 'mistakes' | 'unresolved'> & {
  /** `/<name>`; of a backend without endpoints if the reference is broken. */
  readonly reference: string
  readonly isBroken: boolean
}

/** Resolves a reference at a path below `spec`. */
export function resolveBackend(reference: BackendReference, path: Path, lookups: Lookups): ResolvedBackend {
  const found = lookups.backend(reference)
  if (found.kind === 'unresolved') {
    const { placeholder, reason, message } = found
    return {
      reference: `/${placeholder}`,
      backends: [placeholder],
      isBroken: true,
      mistakes: [],
      unresolved: [{ reason, message: `${formatPath(path)}: ${message}` }],
    }
  }
  const { name, traffic, failure } = found
  if (traffic === 'http') {
    const unresolved =
      failure === undefined ? [] : [{ reason: 'InvalidBackend', message: `${formatPath(path)}: ${failure}` }]
    return {
      reference: `/${name}`,
      backends: [name],
      isBroken: failure !== undefined,
      mistakes: [],
      unresolved,
    }
  }
  const message = `must refer to a Service or a static GatewayBackend, and ${name} is of kind ${traffic}`
  return {
    reference: `/${name}`,
    backends: [],
    isBroken: true,
    mistakes: [{ path, message }],
    unresolved: [{ reason: 'InvalidKind', message: `${formatPath(path)}: ${message}` }],
  }
}
