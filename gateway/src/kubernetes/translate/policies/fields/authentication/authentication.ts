import type { Path } from '../../../../../schema/path.ts'
import { secretText } from '../../../../objects/secret-text.ts'
import { fileValue } from '../../../../own-kinds/enumerations.ts'
import type { KeySet, McpAuthentication } from '../../../../own-kinds/gateway-policy/authentication.ts'
import type { RoutePolicies } from '../../../plan.ts'
import type { Lookups } from '../../lookups.ts'
import { type Field, type FieldKind, fieldOf } from '../field.ts'
import { secretProblem } from '../secret-problem.ts'

const jwtPath: Path = ['traffic', 'jwtAuthentication']

/** `traffic.jwtAuthentication`. */
export const jwtField: FieldKind = {
  path: 'traffic.jwtAuthentication',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'mostSpecific',
  translate({ traffic }) {
    const written = traffic?.jwtAuthentication
    if (written === undefined) return undefined
    const { mode, location, providers } = written
    const jwtAuth = {
      ...(mode && { mode: fileValue(mode) }),
      ...(location && { location }),
      providers: providers.map(({ jwks, ...issuer }) => ({ ...issuer, jwks: keySetOf(jwks) })),
    }
    return fieldOf({ jwtAuth }, { place: ['jwtAuth'], path: jwtPath })
  },
}

function keySetOf({ remote, inline }: KeySet): { url: string } | { inline: string } {
  return remote === undefined ? { inline } : { url: remote.url }
}

const mcpPath: Path = ['backend', 'mcp', 'mcpAuthentication']

/** `backend.mcp.mcpAuthentication`. */
export const mcpAuthenticationField: FieldKind = {
  path: 'backend.mcp.mcpAuthentication',
  traffic: ['mcp'],
  levels: 'mostSpecific',
  translate({ backend }, lookups) {
    const written = backend?.mcp?.mcpAuthentication
    return written && mcpAuthentication(written, lookups)
  },
}

function mcpAuthentication(written: McpAuthentication, lookups: Lookups): Field {
  const { mode, provider, clientSecretRef, jwks, authorizationServers, front, ...common } = written
  const secret = clientSecretRef && clientSecret(clientSecretRef, lookups)
  const mcpAuthentication = {
    ...common,
    ...(mode && { mode: fileValue(mode) }),
    ...(provider && { provider: providerOf(fileValue(provider)) }),
    ...(secret?.text !== undefined && { clientSecret: secret.text }),
    ...(jwks && { jwks: keySetOf(jwks) }),
    ...(authorizationServers && { authorizationServers: fileValue(authorizationServers) }),
    ...(front && { front: frontOf(front) }),
  }
  const field = fieldOf({ mcpAuthentication }, { place: ['mcpAuthentication'], path: mcpPath })
  return secret?.problem === undefined ? field : { ...field, ...secret.problem }
}

type Front = NonNullable<McpAuthentication['front']>

function frontOf({ claims, accessTokens, ...common }: Front) {
  return {
    ...common,
    ...(claims && { claims: fileValue(claims) }),
    ...(accessTokens && { accessTokens: fileValue(accessTokens) }),
  }
}

type Provider = NonNullable<NonNullable<RoutePolicies['mcpAuthentication']>['provider']>

function providerOf(name: string): Provider {
  // The names of the enumeration are those of the choice.
  return { [name]: {} } as unknown as Provider
}

type ClientSecretRef = NonNullable<McpAuthentication['clientSecretRef']>

function clientSecret({ key = 'client-secret', ...reference }: ClientSecretRef, lookups: Lookups) {
  const path = [...mcpPath, 'clientSecretRef']
  const found = lookups.secret(reference)
  if (found.kind === 'missing') return { text: undefined, problem: secretProblem(found, path) }
  const text = secretText(found.object, key)?.trim()
  const message = `Secret ${reference.name} has no entry ${key}`
  return { text, problem: text ? undefined : secretProblem({ reason: 'InvalidRef', message }, path) }
}
