import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { unavailable } from '../cloud/fetch-token.ts'
import type { ExternalAccount, SubjectSource } from './credential-file.ts'
import { impersonate } from './impersonation.ts'
import {
  accepted,
  type CallTokenService,
  cloudScope,
  formCall,
  type RequestGoogleToken,
  requiredToken,
  tokenIn,
} from './token-request.ts'

/**
 * Exchanges the token of another identity provider (https://google.aip.dev/auth/4117), and requests tokens of
 * a service account with it if the credential names one.
 */
export function compileExternalAccount(
  account: ExternalAccount,
  call: CallTokenService,
  context: CompileContext,
): RequestGoogleToken {
  const { audience, subjectTokenType, tokenUrl, client, source, impersonation } = account
  const readSubject = createSubjectReader(source, call, context)
  const authorization =
    client &&
    `Basic ${Buffer.from(`${encodeURIComponent(client.id)}:${encodeURIComponent(client.secret)}`).toString('base64')}`
  const federated: RequestGoogleToken = async (wanted) => {
    if (wanted.kind === 'id')
      throw unavailable('external account: id tokens require service_account_impersonation_url')
    const form = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience,
      scope: cloudScope,
      subject_token: await readSubject(),
      subject_token_type: subjectTokenType,
    }
    const request = formCall(tokenUrl, form)
    const headers = authorization === undefined ? request.headers : { ...request.headers, authorization }
    return tokenIn(await call({ ...request, headers: headers ?? {} }), wanted, 'external account')
  }
  return impersonation === undefined ? federated : impersonate(federated, impersonation, call)
}

/** The token is read for each exchange, because its issuer replaces it. */
function createSubjectReader(
  { from, member }: SubjectSource,
  call: CallTokenService,
  { readFileNow }: CompileContext,
): () => Promise<string> {
  const service = 'external account: credential_source'
  const tokenOf = (text: string) => {
    if (member === undefined) return requiredToken(text.trim(), service)
    return requiredToken(memberOf(text, member), service)
  }
  if ('file' in from) {
    const { file } = from
    return async () => tokenOf(readSource(() => readFileNow(file)))
  }
  const request = { url: from.url, method: 'GET', headers: from.headers } as const
  return async () => tokenOf(accepted(await call(request), service).text)
}

function readSource(read: () => string): string {
  try {
    return read()
  } catch (cause) {
    throw unavailable('external account: the file of credential_source is not readable', cause)
  }
}

function memberOf(text: string, member: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null
      ? new Map(Object.entries(value)).get(member)
      : undefined
  } catch {
    return undefined
  }
}
