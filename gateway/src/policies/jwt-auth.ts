import type { AuthenticationCheck } from '../identity/authentication.ts'
import {
  bearerLocation,
  checkLocation,
  compileLocation,
  locationSchema,
} from '../identity/credential-location.ts'
import { compileTokenCheck } from '../identity/jwt/token-check.ts'
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

const anyAudience = '*'

const issuerFields = {
  issuer: name({
    doc: 'Issuer of the tokens; equals their `iss` to the letter.',
    example: 'https://id.example.com/realms/main',
  }),
  audiences: list(
    name({ doc: 'An audience.' }),
    {
      doc: 'One of them must be in the `aud` of a token. `["*"]` also accepts tokens that are meant for others.',
      example: ['https://gateway.example.com'],
    },
    { min: 1 },
  ),
  jwks: jwksSchema(),
  jwtValidationOptions: optional(validationOptionsSchema),
}

const issuerSchema = object(issuerFields, { doc: 'One issuer.' })

const commonFields = {
  mode: optional(
    enumeration(['strict', 'optional', 'permissive'], {
      doc: 'Who passes: `strict` only valid tokens, `optional` also requests without a token, `permissive` everyone.',
      default: 'strict',
    }),
  ),
  location: optional(locationSchema),
}

/** `jwtAuth`: tokens of one identity provider, or of several. */
export const jwtAuthSchema = anyOfShapes(
  [
    object({ ...commonFields, ...issuerFields }, { doc: 'Tokens of one issuer.' }),
    object(
      {
        ...commonFields,
        providers: list(
          issuerSchema,
          { doc: 'Issuers. The `iss` of a token says which of them checks it.' },
          { min: 1 },
        ),
      },
      { doc: 'Tokens of several issuers.' },
    ),
  ],
  {
    doc: 'Signed tokens (JWT): who has a valid one passes, and its claims are `jwt.*` in expressions. It is taken off the request; one that is not valid stays, where `mode` lets the request pass.',
  },
)

export type JwtAuthConfig = Infer<typeof jwtAuthSchema>
/** Every issuer whose tokens are accepted, whichever form the configuration has. */
function issuersOf(config: JwtAuthConfig): readonly Infer<typeof issuerSchema>[] {
  return 'providers' in config ? config.providers : [config]
}

/** Reports key sets that are none, issuers that occur twice, and places where no token can be. */
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

/** Finds out by token who asks. Writes `facts.jwt`. Keys and verified tokens outlive reloads. */
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

/** Clients are told that a token is not good, and not why (RFC 6750 section 3.1). */
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

/** Not a 401: that would make clients throw good tokens away while the provider is down. */
function unavailable(exchange: Exchange): Reply {
  exchange.log.refusedBy = 'jwt: no keys yet'
  return refuse(exchange, {
    status: 503,
    code: 'keys_unavailable',
    message: 'authentication failure: the keys of the identity provider are not known yet',
    headers: { 'retry-after': '1' },
  })
}
