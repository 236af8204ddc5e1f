import { parseCidr } from '../../../lib/address/cidr.ts'
import { boolean, enumeration, type Infer, list, name, object, optional } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** `mcpAuthentication.front`. */
export const authorizationServerSchema = object(
  {
    claims: optional(
      enumeration(['accessToken', 'idToken'], {
        doc: 'The token of the provider that claims (`jwt.*`) are read from. `idToken` is for providers whose access tokens are not signed tokens for `audiences`; `clientId` must then be among `audiences`.',
        default: 'accessToken',
      }),
    ),
    accessTokens: optional(
      enumeration(['gateway', 'provider'], {
        doc: "Access tokens that clients get: the gateway's own, which only the gateway can read, or the provider's.",
        default: 'gateway',
      }),
    ),
    scopes: optional(
      list(name({ doc: 'A scope.' }), {
        doc: 'Scopes that the gateway asks the provider for, besides those of the client. Some providers issue refresh tokens for `offline_access` only.',
        example: ['openid', 'offline_access'],
      }),
    ),
    registration: optional(
      boolean({ doc: 'Whether clients may register themselves (RFC 7591).', default: true }),
    ),
    clientDocuments: optional(
      boolean({
        doc: 'Whether the id of a client may be the address of its metadata document.',
        default: true,
      }),
    ),
    clientDocumentNetworks: optional(
      list(name({ doc: 'An address, or a range such as `10.0.0.0/8`.' }), {
        doc: 'Networks that client metadata documents may be fetched from, besides public addresses.',
        example: ['10.20.0.0/16'],
        advanced: true,
      }),
    ),
  },
  { doc: 'The gateway as authorization server, with `authorizationServers: front`.' },
)

export type AuthorizationServerConfig = Infer<typeof authorizationServerSchema>

/** Settings that the front depends on. */
export type AuthorizationServerSettings = {
  front: AuthorizationServerConfig | undefined
  clientId: string | undefined
  audiences: readonly string[]
  resource: string | undefined
}

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Reports settings without which the front cannot work, and those that contradict each other. */
export function checkAuthorizationServer(
  { front = {}, clientId, audiences, resource }: AuthorizationServerSettings,
  report: ReportIssue,
) {
  const why = 'with authorizationServers front'
  if (clientId === undefined) report(['clientId'], `is required ${why}: the gateway signs in at the provider`)
  if (resource === undefined)
    report(['resourceMetadata', 'resource'], `is required ${why}: the issuer follows from it`)
  else checkResource(resource, (message) => report(['resourceMetadata', 'resource'], message))
  if (front.claims === 'idToken' && front.accessTokens === 'provider')
    report(['front', 'accessTokens'], 'must be gateway if claims are read from the ID token')
  if (front.claims === 'idToken' && clientId !== undefined && !audiences.includes(clientId))
    report(['audiences'], 'must include clientId if claims are read from the ID token')
  front.scopes?.forEach((scope, index) => {
    if (!scopeForm.test(scope)) report(['front', 'scopes', index], `not a scope: "${scope}"`)
  })
  front.clientDocumentNetworks?.forEach((network, index) => {
    if (parseCidr(network) === undefined)
      report(['front', 'clientDocumentNetworks', index], `not an address or a range: "${network}"`)
  })
}

function checkResource(resource: string, report: (message: string) => void) {
  const { protocol, hostname, search } = new URL(resource)
  if (protocol !== 'https:' && !loopbackHost.test(hostname))
    report('must be https, except on loopback: codes and tokens pass there')
  if (search !== '') report('must not have a query: it is part of the issuer')
}
