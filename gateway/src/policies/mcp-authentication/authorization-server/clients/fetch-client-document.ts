import { type FetchedDocument, fetchDocument } from '../../../../identity/jwt/fetch-document.ts'
import type { EgressPolicy } from '../../../../net/egress/egress.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { sendUnder } from '../../../../upstream/egress.ts'
import { compileDocumentAddresses } from './document-addresses.ts'

const maxBytes = 10 * 1024
const timeoutMs = 5_000

/**
 * Compiles the fetch of client metadata documents from public addresses and from `networks`. The connection's
 * own lookup checks the address, so DNS rebinding has no effect. Redirects are not followed.
 */
export function compileClientDocumentFetch(
  networks: readonly string[],
  { send, egress }: Pick<CompileContext, 'send' | 'egress'>,
): (url: string) => Promise<FetchedDocument> {
  const isAllowed = compileDocumentAddresses(networks)
  const policy: EgressPolicy = {
    key: `client documents ${networks.join(' ')} ${egress.document.key}`,
    refuses: (target) =>
      egress.document.refuses(target) ??
      (isAllowed(target.address) ? undefined : `${target.host} has no public address`),
  }
  const sendSafely = sendUnder(policy, send)
  return (url) => fetchDocument(sendSafely, { url, maxBytes, timeoutMs })
}
