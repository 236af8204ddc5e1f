import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { compileConnection } from '../../connection.ts'
import { createTokenFetch, type RequestScope, type TokenFetch, unavailable } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import type { AssignedIdentity } from './config.ts'

const timeoutMs = 5_000
const metadataOrigin = 'http://169.254.169.254'

/** A service that issues tokens to software on its machine. */
type TokenService = {
  readonly origin: string
  readonly path: string
  readonly version: string
  readonly header: readonly [name: string, value: string]
  /** Parameters of identities assigned by users. */
  readonly parameters: { readonly clientId: string; readonly objectId: string; readonly resourceId: string }
}

/** Compiles a managed identity of virtual machines, App Service, Functions or Container Apps. */
export function compileManagedIdentity(
  identity: AssignedIdentity | undefined,
  node: object,
  context: CompileContext,
): RequestScope {
  const service = serviceOf(context.environment)
  const connection = compileConnection({}, context.egress.of(node), context)
  const fetchToken = createTokenFetch(context.send, timeoutMs)
  return async (scope) => {
    const query = new URLSearchParams({ 'api-version': service.version, resource: resourceOf(scope) })
    const assigned = parameterOf(identity, service)
    if (assigned !== undefined) query.append(...assigned)
    const path = `${service.path}?${query}`
    const [name, value] = service.header
    const headers = { [name]: value, accept: 'application/json' }
    return tokenIn(
      await fetchToken({ ...service, path, method: 'GET', headers, body: undefined, connection }),
      context,
    )
  }
}

/**
 * https://learn.microsoft.com/azure/app-service/overview-managed-identity,
 * https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
 */
function serviceOf(environment: CompileContext['environment']): TokenService {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: header } = environment
  const address = endpoint && header ? URL.parse(endpoint) : null
  if (address !== null && header) {
    return {
      origin: address.origin,
      path: address.pathname,
      version: '2019-08-01',
      header: ['x-identity-header', header],
      parameters: { clientId: 'client_id', objectId: 'principal_id', resourceId: 'mi_res_id' },
    }
  }
  // The variable of Azure's SDKs for a proxy of the metadata service.
  const proxy = URL.parse(environment['AZURE_POD_IDENTITY_AUTHORITY_HOST'] ?? '')
  return {
    origin: proxy?.origin ?? metadataOrigin,
    path: '/metadata/identity/oauth2/token',
    version: '2018-02-01',
    header: ['metadata', 'true'],
    parameters: { clientId: 'client_id', objectId: 'object_id', resourceId: 'msi_res_id' },
  }
}

function parameterOf(
  identity: AssignedIdentity | undefined,
  { parameters }: TokenService,
): [name: string, value: string] | undefined {
  if (identity === undefined) return undefined
  if (identity.clientId !== undefined) return [parameters.clientId, identity.clientId]
  if (identity.objectId !== undefined) return [parameters.objectId, identity.objectId]
  return [parameters.resourceId, identity.resourceId]
}

/** Managed identities have resources in place of scopes. */
function resourceOf(scope: string): string {
  return scope.endsWith('/.default') ? scope.slice(0, -'/.default'.length) : scope
}

/** `expires_in` in seconds, or `expires_on` in seconds since the epoch, as numbers or texts. */
function tokenIn({ status, body }: TokenFetch, { clock }: CompileContext): TimedToken {
  if (status !== 200) throw unavailable(`managed identity: status ${status}`)
  const { access_token: token, expires_in: lifetime, expires_on: end } = body
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw unavailable('managed identity: response without a valid access_token')
  const seconds = secondsIn(lifetime) ?? (secondsIn(end) ?? 0) - clock.now() / 1_000
  return { token, lifetimeMs: Math.max(0, seconds * 1_000) }
}

function secondsIn(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) ? seconds : undefined
}
