import { parseHostPort } from '../../../../lib/address/host-port.ts'

/** Address of a service: `host:port`, its scheme and the prefix of its paths. */
export type Endpoint = { readonly host: string; readonly isTls: boolean; readonly prefix: string }

/**
 * Parses the address of a service: a host, `host:port` or an `http:` or `https:` URL. Without a scheme it is
 * `https:`. Undefined for anything else, also for URLs with credentials, a query or a fragment.
 */
export function parseEndpoint(text: string): Endpoint | undefined {
  if (!/^https?:\/\//i.test(text)) {
    const host = [text, `${text}:443`].find((each) => parseHostPort(each) !== undefined)
    return host === undefined || host.endsWith(':0') ? undefined : { host, isTls: true, prefix: '' }
  }
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || /[?#\s\\]/.test(text)) return undefined
  const isTls = url.protocol === 'https:'
  const host = `${url.hostname}:${url.port || (isTls ? 443 : 80)}`
  if (parseHostPort(host) === undefined || host.endsWith(':0')) return undefined
  return { host, isTls, prefix: url.pathname.replace(/\/+$/, '') }
}
