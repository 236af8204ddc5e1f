import { GatewayError } from '../../../lib/gateway-error.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { type RequestScope, unavailable } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import { compileTokenEndpoint, type RequestToken } from '../token-endpoint.ts'
import type { AzureAuthConfig, ClientSecretConfig } from './config.ts'
import { compileManagedIdentity } from './managed-identity.ts'

/** Object whose source determines the egress policy of token requests. */
type Node = object

const defaultAuthority = 'https://login.microsoftonline.com'
/** Lifetime of a token whose response has none. */
const defaultLifetimeMs = 300_000

/**
 * Compiles the identity of the gateway. `implicit` selects one by the environment. Throws for unreadable
 * files and missing variables.
 */
export function compileIdentity(config: AzureAuthConfig, node: Node, context: CompileContext): RequestScope {
  if (config.implicit !== undefined) return compileImplicit(node, context)
  const { clientSecret, workloadIdentity, managedIdentity } = config.explicitConfig
  if (clientSecret !== undefined) return compileClientSecret(clientSecret, node, context)
  if (workloadIdentity !== undefined) return compileWorkload(node, context)
  return compileManagedIdentity(managedIdentity.userAssignedIdentity, node, context)
}

function compileImplicit(node: Node, context: CompileContext): RequestScope {
  const {
    AZURE_TENANT_ID: tenant,
    AZURE_CLIENT_ID: client,
    AZURE_CLIENT_SECRET: secret,
    AZURE_FEDERATED_TOKEN_FILE: tokenFile,
  } = context.environment
  if (tenant && client && secret) {
    const config = { tenant_id: tenant, client_id: client, client_secret: secret }
    return compileClientSecret(config, node, context)
  }
  if (tenant && client && tokenFile) return compileWorkload(node, context)
  return compileManagedIdentity(client ? { clientId: client } : undefined, node, context)
}

/** https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow */
function compileClientSecret(config: ClientSecretConfig, node: Node, context: CompileContext): RequestScope {
  const clientAuth = {
    clientId: config.client_id,
    clientSecret: config.client_secret,
    method: 'clientSecretPost' as const,
  }
  const request = compileTokenEndpoint(
    { ...endpointOf(config.tenant_id, context), clientAuth },
    context,
    node,
  )
  return (scope) => issue(request, new URLSearchParams({ grant_type: 'client_credentials', scope }))
}

/** The token of the service account is read for each request, because Kubernetes replaces it. */
function compileWorkload(node: Node, context: CompileContext): RequestScope {
  const { environment, readFileNow } = context
  const required = (name: string): string => {
    const value = environment[name]
    if (value) return value
    throw new Error(`azure.workloadIdentity: the environment variable ${name} is not set`)
  }
  const tenant = required('AZURE_TENANT_ID')
  const client = required('AZURE_CLIENT_ID')
  const file = required('AZURE_FEDERATED_TOKEN_FILE')
  const request = compileTokenEndpoint(endpointOf(tenant, context), context, node)
  const readToken = () => {
    try {
      return readFileNow(file).trim()
    } catch (cause) {
      throw unavailable('AZURE_FEDERATED_TOKEN_FILE is not readable', cause)
    }
  }
  return async (scope) =>
    issue(
      request,
      new URLSearchParams({
        grant_type: 'client_credentials',
        scope,
        client_id: client,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: readToken(),
      }),
    )
}

function endpointOf(tenant: string, { environment }: CompileContext): { host: string; path: string } {
  const host = environment['AZURE_AUTHORITY_HOST'] || defaultAuthority
  const address = URL.parse(host)
  if (address === null) throw new Error('azure: AZURE_AUTHORITY_HOST is not an address: use https://host')
  return { host: address.origin, path: `/${encodeURIComponent(tenant)}/oauth2/v2.0/token` }
}

/** No failure concerns the client: the identity is that of the gateway. */
async function issue(request: RequestToken, form: URLSearchParams): Promise<TimedToken> {
  try {
    const { token, lifetimeMs = defaultLifetimeMs } = await request(form)
    return { token, lifetimeMs }
  } catch (error) {
    const isRefusal = error instanceof GatewayError && error.code !== 'credential_unavailable'
    throw isRefusal ? unavailable('identity of the gateway refused', error.cause) : error
  }
}
