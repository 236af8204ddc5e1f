/** RFC 9110 section 9.2.2. */
const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** Whether a request may be sent again after its connection has failed without a response. */
export function mayRepeat({
  method,
  repeatable,
}: {
  method: string
  repeatable?: boolean | undefined
}): boolean {
  return repeatable === true || idempotentMethods.has(method)
}
