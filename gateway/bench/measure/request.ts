import type { Subject } from '../subjects/processes.ts'

/** A request before it has the form of its receiver. The body has one character per byte. */
export type RequestParts = { method: string; path: string; headers: Record<string, string>; body: string }

/** The bytes of an HTTP/1.1 request, changed to the form that the subject expects. */
export function requestText(subject: Subject, parts: RequestParts): string {
  const { method, path, headers, body } = subject.adapt?.(parts) ?? parts
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `host: 127.0.0.1:${subject.port}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === '' ? [] : [`content-length: ${body.length}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
