/** Nonce of this page for style elements, set by the gateway for each reply of the page. */
export function cspNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
}
