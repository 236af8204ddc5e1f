import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { compileSigner } from '../signed-jwt.ts'
import type { AuthorizedUser, GoogleCredential, ServiceAccountKey } from './credential-file.ts'
import { compileExternalAccount } from './external-account.ts'
import { impersonate } from './impersonation.ts'
import {
  type CallTokenService,
  cloudScope,
  formCall,
  type RequestGoogleToken,
  tokenIn,
} from './token-request.ts'

/** Compiles the identity of a credential. Throws for keys that cannot sign. */
export function compileCredential(
  credential: GoogleCredential,
  call: CallTokenService,
  context: CompileContext,
): RequestGoogleToken {
  switch (credential.kind) {
    case 'service_account':
      return compileServiceAccount(credential, call, context)
    case 'authorized_user':
      return compileUser(credential, call)
    case 'external_account':
      return compileExternalAccount(credential, call, context)
    case 'impersonated_service_account': {
      const { source, impersonation } = credential
      return impersonate(compileCredential(source, call, context), impersonation, call)
    }
  }
}

/** Lifetime of the signed assertion, the longest that Google accepts. */
const assertionSeconds = 3_600

/**
 * https://developers.google.com/identity/protocols/oauth2/service-account: a signed assertion for a token.
 */
function compileServiceAccount(
  { email, privateKey, keyId, tokenUrl }: ServiceAccountKey,
  call: CallTokenService,
  context: CompileContext,
): RequestGoogleToken {
  const sign = compileSigner({ signingKey: privateKey, alg: 'RS256', kid: keyId }, context)
  return async (wanted) => {
    const iat = Math.floor(context.clock.now() / 1_000)
    const purpose = wanted.kind === 'id' ? { target_audience: wanted.audience } : { scope: cloudScope }
    const assertion = sign({
      iss: email,
      sub: email,
      aud: tokenUrl,
      iat,
      exp: iat + assertionSeconds,
      ...purpose,
    })
    const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
    return tokenIn(await call(formCall(tokenUrl, form)), wanted, 'service account')
  }
}

/** The id token of a user is for the client of the login, and no other audience. */
function compileUser(user: AuthorizedUser, call: CallTokenService): RequestGoogleToken {
  const form = {
    grant_type: 'refresh_token',
    client_id: user.clientId,
    client_secret: user.clientSecret,
    refresh_token: user.refreshToken,
  }
  return async (wanted) => tokenIn(await call(formCall(user.tokenUrl, form)), wanted, 'authorized user')
}
