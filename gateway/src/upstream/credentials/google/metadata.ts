import type { CompileContext } from '../../../pipeline/compile-context.ts'
import {
  accepted,
  type CallTokenService,
  idToken,
  type RequestGoogleToken,
  tokenIn,
} from './token-request.ts'

const defaultHost = 'metadata.google.internal'
const account = '/computeMetadata/v1/instance/service-accounts/default'
const service = 'metadata server'

/**
 * The service account of a machine, Cloud Run or GKE. https://cloud.google.com/compute/docs/metadata/overview
 */
export function compileMetadataIdentity(
  call: CallTokenService,
  { environment }: CompileContext,
): RequestGoogleToken {
  // The variable of Google's libraries for another address of the server.
  const url = `http://${environment['GCE_METADATA_HOST'] || defaultHost}${account}`
  const headers = { 'metadata-flavor': 'Google' }
  return async (wanted) => {
    if (wanted.kind === 'access')
      return tokenIn(await call({ url: `${url}/token`, method: 'GET', headers }), wanted, service)
    const query = new URLSearchParams({ audience: wanted.audience, format: 'full' })
    const reply = await call({ url: `${url}/identity?${query}`, method: 'GET', headers })
    return idToken(accepted(reply, service).text.trim(), service)
  }
}
