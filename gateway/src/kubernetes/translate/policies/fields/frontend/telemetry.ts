import type { Path } from '../../../../../schema/path.ts'
import type { AccessLog, Attributes, Tracing } from '../../../../own-kinds/gateway-policy/frontend.ts'
import type { Lookups } from '../../lookups.ts'
import { type ResolvedBackend, resolveBackend } from '../resolve-backend.ts'
import type { FrontendPart } from './frontend-part.ts'

/** Translates `frontend.accessLog`. */
export function translateAccessLog(written: AccessLog, path: Path, lookups: Lookups): FrontendPart {
  const { filter, attributes, otlp } = written
  const target = otlp && resolveBackend(otlp.backendRef, [...path, 'otlp', 'backendRef'], lookups)
  const lines = { ...(filter !== undefined && { filter }), ...changesOf(attributes) }
  return {
    policies: {
      accessLog: {
        ...lines,
        ...(otlp && target && { otlp: { ...collectorOf(otlp, target), ...recordsOf(otlp) } }),
      },
    },
    resolved: target,
    rename(rest) {
      const [first, ...below] = rest
      if (first !== 'otlp') return renameChanges(rest, attributes)
      if (below[0] === 'backend') return ['otlp', 'backendRef']
      if (below[0] !== 'fields') return rest
      return ['otlp', ...renameChanges(below.slice(1), otlp?.attributes)]
    },
  }
}

type Export = NonNullable<AccessLog['otlp']>

function recordsOf({ filter, attributes }: Export) {
  return {
    ...(filter !== undefined && { filter }),
    ...(attributes && { fields: changesOf(attributes) }),
  }
}

/** Translates `frontend.tracing`. */
export function translateTracing(written: Tracing, path: Path, lookups: Lookups): FrontendPart {
  const { randomSampling, clientSampling, filter, attributes, resources } = written
  const target = resolveBackend(written.backendRef, [...path, 'backendRef'], lookups)
  const { add, remove } = changesOf(attributes)
  return {
    policies: {
      tracing: {
        ...collectorOf(written, target),
        ...(randomSampling !== undefined && { randomSampling }),
        ...(clientSampling !== undefined && { clientSampling }),
        ...(filter !== undefined && { filter }),
        ...(add && { attributes: add }),
        ...(remove && { remove }),
        ...(resources && { resources: mapOf(resources) }),
      },
    },
    resolved: target,
    rename(rest) {
      const [first, ...below] = rest
      if (first === 'backend') return ['backendRef']
      if (first === 'attributes') return renameChanges(['add', ...below], attributes)
      if (first === 'remove') return renameChanges(rest, attributes)
      const [name] = below
      return first === 'resources' && name !== undefined ? [first, ...expressionPath(resources, name)] : rest
    },
  }
}

/** Fields of a collector. A broken reference has a backend without endpoints: exports are dropped. */
function collectorOf({ protocol, path }: Pick<Tracing, 'protocol' | 'path'>, { reference }: ResolvedBackend) {
  return {
    backend: reference,
    ...(protocol && { protocol: protocol === 'HTTP' ? ('http' as const) : ('grpc' as const) }),
    ...(path !== undefined && { path }),
  }
}

type Added = NonNullable<Attributes['add']>

function changesOf({ add, remove }: Attributes = {}) {
  return { ...(add && { add: mapOf(add) }), ...(remove && { remove }) }
}

function mapOf(added: Added): Record<string, string> {
  return Object.fromEntries(added.map(({ name, expression }) => [name, expression]))
}

/** Path of `add.<name>` and `remove[]` below the object with `attributes`. */
function renameChanges(rest: Path, attributes: Attributes | undefined): Path {
  const [list, name] = rest
  if (list === 'remove') return ['attributes', ...rest]
  if (list !== 'add') return rest
  return ['attributes', list, ...(name === undefined ? [] : expressionPath(attributes?.add, name))]
}

function expressionPath(added: Added = [], name: string | number): Path {
  const index = added.findIndex((one) => one.name === name)
  return index < 0 ? [name] : [index, 'expression']
}
