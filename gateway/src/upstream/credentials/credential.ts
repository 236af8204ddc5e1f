/** Whether a text is a valid credential. Other texts would fail or be truncated when a request is sent. */
export function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
