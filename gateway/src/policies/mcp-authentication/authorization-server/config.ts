import { parseCidr } from '../../../lib/address/cidr.ts'
import { boolean, enumeration, type Infer, list, name, object, optional } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** Fields without enumerations. */
export const authorizationServerFields = {
  scopes: optional(
    list(name({ doc: 'A scope.' }), {
      doc: 'Scopes that the gateway requests from the provider, in addition to those of the client. Some providers issue refresh tokens only for `offline_access`.',
      example: ['openid', 'offline_access'],
    }),
  ),
  registration: optional(
    boolean({ doc: 'Whether dynamic client registration (RFC 7591) is enabled.', default: true }),
  ),
  clientDocuments: optional(
    boolean({
      doc: 'Whether client ids may be addresses of client metadata documents.',
      default: true,
    }),
  ),
  clientDocumentNetworks: optional(
    list(name({ doc: 'An address, or a range such as `10.0.0.0/8`.' }), {
      doc: 'Networks from which client metadata documents may be fetched, in addition to public addresses.',
      example: ['10.20.0.0/16'],
      advanced: true,
    }),
  ),
}

/** `mcpAuthentication.front`. */
export const authorizationServerSchema = object(
  {
    claims: optional(
      enumeration(['accessToken', 'idToken'], {
        doc: 'Source of the claims (`jwt.*`). `idToken` is for providers whose access tokens are not JWTs for `audiences`; `audiences` must then include `clientId`.',
        default: 'accessToken',
      }),
    ),
    accessTokens: optional(
      enumeration(['gateway', 'provider'], {
        doc: 'Access tokens that clients receive: `gateway` issues opaque tokens of its own, `provider` forwards the tokens of the provider.',
        default: 'gateway',
      }),
    ),
    ...authorizationServerFields,
  },
  { doc: 'Settings of the gateway as authorization server, with `authorizationServers: front`.' },
)

export type AuthorizationServerConfig = Infer<typeof authorizationServerSchema>

/** Settings that the authorization server requires. */
export type AuthorizationServerSettings = {
  front: AuthorizationServerConfig | undefined
  clientId: string | undefined
  audiences: readonly string[]
  resource: string | undefined
}

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Reports missing and contradictory settings of the authorization server. */
export function checkAuthorizationServer(
  { front = {}, clientId, audiences, resource }: AuthorizationServerSettings,
  report: ReportIssue,
) {
  const condition = 'with authorizationServers front'
  if (clientId === undefined)
    report(['clientId'], `is required ${condition}: the gateway signs in at the provider`)
  if (resource === undefined)
    report(['resourceMetadata', 'resource'], `is required ${condition}: it determines the issuer`)
  else checkResource(resource, (message) => report(['resourceMetadata', 'resource'], message))
  if (front.claims === 'idToken' && front.accessTokens === 'provider')
    report(['front', 'accessTokens'], 'must be gateway if claims are read from the ID token')
  if (front.claims === 'idToken' && clientId !== undefined && !audiences.includes(clientId))
    report(['audiences'], 'must include clientId if claims are read from the ID token')
  front.scopes?.forEach((scope, index) => {
    if (!scopeForm.test(scope)) report(['front', 'scopes', index], `must be a scope, got "${scope}"`)
  })
  front.clientDocumentNetworks?.forEach((network, index) => {
    if (parseCidr(network) === undefined)
      report(['front', 'clientDocumentNetworks', index], `must be an address or a range, got "${network}"`)
  })
}

function checkResource(resource: string, report: (message: string) => void) {
  const { protocol, hostname, search } = new URL(resource)
  if (protocol !== 'https:' && !loopbackHost.test(hostname))
    report('must be https, except on loopback: it receives codes and tokens')
  if (search !== '') report('must not have a query: it is part of the issuer')
}
