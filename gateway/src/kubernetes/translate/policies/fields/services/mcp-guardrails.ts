import type { McpGuardrailsConfig, ProcessorConfig } from '../../../../../policies/guardrails/mcp/config.ts'
import type { Path } from '../../../../../schema/path.ts'
import { fileValue } from '../../../../own-kinds/enumerations.ts'
import type { McpGuardrails, McpProcessor } from '../../../../own-kinds/gateway-policy/mcp-guardrails.ts'
import type { Lookups } from '../../lookups.ts'
import { type Field, type FieldKind, fieldOf } from '../field.ts'
import { renameTarget, translateGuard } from '../guards.ts'
import { type ResolvedBackend, resolveBackend } from '../resolve-backend.ts'

const path: Path = ['backend', 'mcp', 'guardrails']

/** `backend.mcp.guardrails`. */
export const mcpGuardrailsField: FieldKind = {
  path: 'backend.mcp.guardrails',
  traffic: ['mcp'],
  levels: 'mostSpecific',
  translate({ backend }, lookups) {
    const written = backend?.mcp?.guardrails
    return written && translateGuardrails(written, lookups)
  },
}

function translateGuardrails({ processors, request, response }: McpGuardrails, lookups: Lookups): Field {
  const services = processors?.map((one, index) =>
    translateProcessor(one, [...path, 'processors', index], lookups),
  )
  const guardsOf = (phase: 'request' | 'response') =>
    (phase === 'request' ? request : response)?.map((guard, index) =>
      translateGuard(guard, [...path, phase, index], lookups),
    )
  const [ofRequest, ofResponse] = [guardsOf('request'), guardsOf('response')]
  const mcpGuardrails: McpGuardrailsConfig = {
    ...(services && { processors: services.map(({ processor }) => processor) }),
    ...(ofRequest && { request: ofRequest.map(({ guard }) => guard) }),
    ...(ofResponse && { response: ofResponse.map(({ guard }) => guard) }),
  }
  const all = [...(services ?? []), ...(ofRequest ?? []), ...(ofResponse ?? [])]
  const resolved = all.flatMap((one) => one.resolved ?? [])
  return {
    ...fieldOf({ mcpGuardrails }, { place: ['mcpGuardrails'], path, rename: renamed }),
    backends: resolved.flatMap(({ backends }) => backends),
    mistakes: resolved.flatMap(({ mistakes }) => mistakes),
    unresolved: resolved.flatMap(({ unresolved }) => unresolved),
  }
}

function translateProcessor(
  { remote, methods }: McpProcessor,
  at: Path,
  lookups: Lookups,
): { processor: ProcessorConfig; resolved: ResolvedBackend } {
  const { backendRef, failureMode, metadata, timeout, ...headers } = remote
  const { allowedRequestHeaders: allowed, disallowedRequestHeaders: disallowed } = headers
  const resolved = resolveBackend(backendRef, [...at, 'remote', 'backendRef'], lookups)
  const hasHeaders = (allowed ?? disallowed) !== undefined
  return {
    processor: {
      backend: resolved.reference,
      methods,
      // A broken reference is a mistake, not an outage: the service stays and refuses.
      ...(failureMode && !resolved.isBroken && { failureMode: fileValue(failureMode) }),
      ...(metadata && { metadata }),
      ...(hasHeaders && {
        requestHeaders: { ...(allowed && { allowed }), ...(disallowed && { disallowed }) },
      }),
      ...(timeout !== undefined && { policies: { http: { requestTimeout: timeout } } }),
    },
    resolved,
  }
}

const processorNames: Readonly<Record<string, string>> = {
  backend: 'backendRef',
  policies: 'timeout',
  requestHeaders: 'allowedRequestHeaders',
}

function renamed(rest: Path): Path {
  const [list, index = 0, field, ...below] = rest
  if (list === undefined || field === undefined) return rest
  if (list !== 'processors') return [list, ...renameTarget(rest.slice(1))]
  if (field === 'methods') return rest
  const written = processorNames[String(field)]
  return [list, index, 'remote', ...(written === undefined ? [field, ...below] : [written])]
}
