import type { ExtAuthzConfig } from '../../../../../policies/ext-authz/config.ts'
import type { Path } from '../../../../../schema/path.ts'
import { bytesOf } from '../../../../own-kinds/byte-size.ts'
import type { ExtAuth } from '../../../../own-kinds/gateway-policy/ext-auth.ts'
import type { Lookups } from '../../lookups.ts'
import type { Mistake } from '../field.ts'
import { resolveBackend } from '../resolve-backend.ts'
import { type Variant, variantsField } from '../variants.ts'

/** `traffic.extAuth`. */
export const extAuthField = variantsField<ExtAuth, ExtAuthzConfig>({
  path: ['traffic', 'extAuth'],
  place: 'extAuthz',
  select: ({ traffic }) => traffic?.extAuth,
  translateOne: translateExtAuth,
  policiesOf: (extAuthz) => ({ extAuthz }),
})

function translateExtAuth(written: ExtAuth, path: Path, lookups: Lookups): Variant<ExtAuthzConfig> {
  const { backendRef, failureMode, forwardBody, cache, timeout, http } = written
  const { reference, isBroken, ...resolved } = resolveBackend(backendRef, [...path, 'backendRef'], lookups)
  const { body, mistakes } = bodyOf(forwardBody, [...path, 'forwardBody', 'maxSize'])
  const headers = http?.allowedRequestHeaders
  return {
    config: {
      backend: reference,
      protocol: protocolOf(written),
      // A broken reference is a mistake, not an outage: the service stays and refuses.
      ...(failureMode && !isBroken && { failureMode: failureMode === 'FailOpen' ? 'allow' : 'deny' }),
      ...(headers && { includeRequestHeaders: headers }),
      ...(body && { includeRequestBody: body }),
      ...(cache && { cache }),
      ...(timeout !== undefined && { policies: { http: { requestTimeout: timeout } } }),
    },
    resolved: { ...resolved, mistakes: [...resolved.mistakes, ...mistakes] },
    rename: renameExtAuth,
  }
}

type Protocol = NonNullable<ExtAuthzConfig['protocol']>

function protocolOf({ grpc, http }: ExtAuth): Protocol {
  if (grpc !== undefined) {
    const { contextExtensions: context, requestMetadata: metadata } = grpc
    return { grpc: { ...(context && { context }), ...(metadata && { metadata }) } }
  }
  const { allowedRequestHeaders: _, allowedResponseHeaders, responseMetadata, ...common } = http
  return {
    http: {
      ...common,
      ...(allowedResponseHeaders && { includeResponseHeaders: allowedResponseHeaders }),
      ...(responseMetadata && { metadata: responseMetadata }),
    },
  }
}

/** Bound of `includeRequestBody.maxRequestBytes`. */
const maxBytes = 16 * 1024 * 1024

type Body = { body?: ExtAuthzConfig['includeRequestBody']; mistakes: readonly Mistake[] }

function bodyOf(forwardBody: ExtAuth['forwardBody'], path: Path): Body {
  if (forwardBody === undefined) return { mistakes: [] }
  const { maxSize, ...others } = forwardBody
  const maxRequestBytes = bytesOf(maxSize)
  if (maxRequestBytes !== undefined && maxRequestBytes <= maxBytes)
    return { body: { ...others, maxRequestBytes }, mistakes: [] }
  return { mistakes: [{ path, message: 'must be a size from 1 to 16Mi bytes, such as 64Ki' }] }
}

const httpNames: Readonly<Record<string, string>> = {
  includeResponseHeaders: 'allowedResponseHeaders',
  metadata: 'responseMetadata',
}
const grpcNames: Readonly<Record<string, string>> = {
  context: 'contextExtensions',
  metadata: 'requestMetadata',
}

function renameExtAuth(rest: Path): Path {
  const [first, second = '', third = '', ...below] = rest
  switch (first) {
    case 'protocol': {
      const names = second === 'http' ? httpNames : grpcNames
      return third === '' ? [second] : [second, names[third] ?? third, ...below]
    }
    case 'includeRequestHeaders':
      return ['http', 'allowedRequestHeaders', ...rest.slice(1)]
    case 'includeRequestBody':
      return ['forwardBody', ...rest.slice(1)]
    case 'backend':
      return ['backendRef']
    case 'policies':
      return ['timeout']
    default:
      return rest
  }
}
