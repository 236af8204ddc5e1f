import type { AuthenticationCheck } from '../identity/authentication.ts'
import { compileTokenCheck } from '../identity/jwt/jwt-authentication.ts'
import { type TokenVerifier, verifierByIssuer } from '../identity/jwt/token-verifier.ts'
import {
  checkJwks,
  compileVerifier,
  jwksSchema,
  validationOptionsSchema,
} from '../identity/jwt/verifier-config.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import { anyOfShapes, enumeration, type Infer, list, name, object, optional } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'
import {
  bearerLocation,
  checkLocation,
  compileLocation,
  locationSchema,
} from '../upstream/credentials/credential-location.ts'

const anyAudience = '*'

/** Fields of an issuer beside its keys. */
export const issuerFields = {
  issuer: name({
    doc: 'Issuer of the tokens. Must equal their `iss` exactly.',
    example: 'https://id.example.com/realms/main',
  }),
  audiences: list(
    name({ doc: 'Audience.' }),
    {
      doc: 'Accepted audiences; `aud` of a token must have one of them. `["*"]` also accepts tokens for other audiences.',
      example: ['https://gateway.example.com'],
    },
    { min: 1 },
  ),
  jwtValidationOptions: optional(validationOptionsSchema),
}

const { issuer, audiences, jwtValidationOptions } = issuerFields
const fieldsWithKeys = { issuer, audiences, jwks: jwksSchema(), jwtValidationOptions }

const issuerSchema = object(fieldsWithKeys, { doc: 'Issuer.' })

const commonFields = {
  mode: optional(
    enumeration(['strict', 'optional', 'permissive'], {
      doc: 'Authentication mode: `strict` requires a valid token, `optional` also admits requests without a token, `permissive` admits all requests.',
      default: 'strict',
    }),
  ),
  location: optional(locationSchema),
}

/** `jwtAuth`: tokens of one or several identity providers. */
export const jwtAuthSchema = anyOfShapes(
  [
    object({ ...commonFields, ...fieldsWithKeys }, { doc: 'Tokens of one issuer.' }),
    object(
      {
        ...commonFields,
        providers: list(
          issuerSchema,
          { doc: 'Issuers. The `iss` of a token selects one of them.' },
          { min: 1 },
        ),
      },
      { doc: 'Tokens of several issuers.' },
    ),
  ],
  {
    doc: 'Authentication with signed tokens (JWT). The claims of a valid token are `jwt.*` in expressions, and the token is removed from the request. An invalid token is forwarded if `mode` admits the request.',
  },
)

export type JwtAuthConfig = Infer<typeof jwtAuthSchema>
/** Returns the issuers of both configuration forms. */
function issuersOf(config: JwtAuthConfig): readonly Infer<typeof issuerSchema>[] {
  return 'providers' in config ? config.providers : [config]
}

/** Reports invalid key sets, duplicate issuers and invalid token locations. */
export function checkJwtAuth(config: JwtAuthConfig, report: ReportIssue) {
  const seen = new Set<string>()
  issuersOf(config).forEach(({ issuer, audiences, jwks }, index) => {
    const path = 'providers' in config ? ['providers', index] : []
    checkJwks(jwks, (under, message) => report([...path, 'jwks', ...under], message))
    if (audiences.length > 1 && audiences.includes(anyAudience)) {
      report([...path, 'audiences'], '"*" accepts every audience: keep it alone, or list the audiences')
    }
    if (seen.has(issuer))
      report([...path, 'issuer'], 'another provider has the same issuer: list all audiences there')
    seen.add(issuer)
  })
  if (config.location !== undefined) {
    checkLocation(config.location, (path, message) => report(['location', ...path], message))
  }
}

/** Compiles authentication by token. Writes `facts.jwt`. Keys and verified tokens survive reloads. */
export function compileJwtAuth(config: JwtAuthConfig, context: CompileContext): AuthenticationCheck {
  return compileTokenCheck({
    mode: config.mode ?? 'strict',
    location: config.location === undefined ? bearerLocation : compileLocation(config.location),
    verifier: verifierOf(config, context),
    unauthorized,
    unavailable,
  })
}

function verifierOf(config: JwtAuthConfig, context: CompileContext): TokenVerifier {
  const verifiers = issuersOf(config).map((node) => {
    const { issuer, audiences, jwks, jwtValidationOptions } = node
    return {
      issuer,
      verifier: compileVerifier(
        {
          issuer,
          audiences: audiences.includes(anyAudience) ? undefined : audiences,
          jwks,
          jwtValidationOptions,
          node,
        },
        context,
      ),
    }
  })
  const [first] = verifiers
  if (first !== undefined && verifiers.length === 1) return first.verifier
  return verifierByIssuer(new Map(verifiers.map(({ issuer, verifier }) => [issuer, verifier])))
}

/** Reply to an invalid token, without the reason (RFC 6750 section 3.1). */
function unauthorized(exchange: Exchange, reason: string | undefined): Reply {
  exchange.log.refusedBy = `jwt: ${reason ?? 'no token'}`
  const problem = reason === undefined ? 'no bearer token found' : 'the token is invalid or malformed'
  return refuse(exchange, {
    status: 401,
    code: 'invalid_token',
    message: `authentication failure: ${problem}`,
    headers: { 'www-authenticate': reason === undefined ? 'Bearer' : 'Bearer error="invalid_token"' },
  })
}

/** Reply while the keys are unavailable. A 401 would make clients discard valid tokens. */
function unavailable(exchange: Exchange): Reply {
  exchange.log.refusedBy = 'jwt: no keys yet'
  return refuse(exchange, {
    status: 503,
    code: 'keys_unavailable',
    message: 'authentication failure: the keys of the identity provider are not known yet',
    headers: { 'retry-after': '1' },
  })
}
