import { type Infer, list, name, object, optional, secretSource, string, url } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** `policies.oauth` of an `mcp` target. */
export const loginSchema = object(
  {
    publicUrl: url({
      doc: 'URL of this MCP endpoint for browsers. Below it are the pages of the login: `<publicUrl>/oauth/callback` is the redirect URI.',
      example: 'https://gateway.example.com/mcp',
    }),
    clientId: optional(
      name({
        doc: 'Client of the gateway at the authorization server. Without one the gateway registers itself (RFC 7591).',
      }),
    ),
    clientSecret: optional(
      secretSource({ doc: 'Secret of the client. Requires `issuer`.', example: '$CLIENT_SECRET' }),
    ),
    issuer: optional(
      url({
        doc: 'Authorization server. By default that of the metadata of the target (RFC 9728).',
        example: 'https://auth.example.com',
      }),
    ),
    scopes: optional(
      list(
        name({ doc: 'A scope.' }),
        { doc: 'Requested scopes.', default: 'those that the target names' },
        { max: 64 },
      ),
    ),
    folder: optional(
      string({
        doc: 'Folder in which tokens are stored, encrypted with a key of each user that derives from `config.session.key`. Replicas may share it. Without one, tokens are in memory and end with the process.',
        example: '/var/lib/tollgate/logins',
      }),
    ),
  },
  {
    doc: 'Login of each user at the target (OAuth): users without a login receive a link, and calls have the token of their user.',
  },
)

export type LoginConfig = Infer<typeof loginSchema>

/** Reports problems that the schema cannot express. */
export function checkLogin(
  { publicUrl, issuer, clientId, clientSecret }: LoginConfig,
  report: ReportIssue,
): void {
  const { hash, search, username } = new URL(publicUrl)
  if (hash !== '' || search !== '' || username !== '')
    report(['publicUrl'], 'must not have a query, a fragment or credentials')
  if (issuer !== undefined && new URL(issuer).search + new URL(issuer).hash !== '')
    report(['issuer'], 'must not have a query or a fragment')
  if (clientSecret !== undefined && clientId === undefined)
    report(['clientSecret'], 'requires clientId: a registered client has its own secret')
  // Otherwise the metadata of the target determines the receiver of the secret.
  if (clientSecret !== undefined && issuer === undefined)
    report(['clientSecret'], 'requires issuer: the secret is for one authorization server')
}
