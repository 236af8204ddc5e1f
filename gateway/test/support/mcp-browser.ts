/**
 * A browser without a window: it follows redirects, keeps cookies, and presses "Allow" on consent pages of
 * the gateway.
 */
export type Browser = {
  /** Follows a journey to the client's own address. */
  browse(start: URL): Promise<URL>
  /** One request, with the cookies so far; redirects are not followed. */
  request(url: URL | string, init?: RequestInit): Promise<Response>
}

export type BrowserOptions = {
  /** The journey ends at addresses that begin like this. */
  redirectUri: string
  maxSteps?: number
  decision?: 'allow' | 'deny'
}

export function createBrowser({ redirectUri, maxSteps = 12, decision = 'allow' }: BrowserOptions): Browser {
  const jar = new Map<string, string>()

  async function request(url: URL | string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = new Headers(init.headers)
    if (cookie !== '') headers.set('cookie', cookie)
    const response = await fetch(url, { ...init, redirect: 'manual', headers })
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (line.split(';', 1)[0] ?? '').split('=', 2)
      jar.set(name, value)
    }
    return response
  }

  return {
    request,
    async browse(start) {
      let url = start
      let response: Response | undefined
      for (let step = 0; step < maxSteps; step += 1) {
        if (url.href.startsWith(redirectUri)) return url
        response ??= await request(url)
        const location = response.headers.get('location')
        if (location !== null) {
          url = new URL(location, url)
          response = undefined
          continue
        }
        const text = await response.text()
        const form = readConsentForm(text)
        if (form === undefined) throw new Error(`the journey ends at ${url}: ${response.status} ${text}`)
        const body = new URLSearchParams({ request: form.request, decision })
        response = await request(form.action, {
          method: 'POST',
          body,
          headers: { origin: new URL(form.action).origin, 'sec-fetch-site': 'same-origin' },
        })
      }
      throw new Error(`more than ${maxSteps} steps`)
    },
  }
}

/** The form of the gateway's consent page; undefined for another page. */
export function readConsentForm(html: string): { action: string; request: string } | undefined {
  const action = /<form method="post" action="([^"]+)">/.exec(html)?.[1]
  const request = /name="request" value="([^"]+)"/.exec(html)?.[1]
  return action === undefined || request === undefined ? undefined : { action, request }
}

/**
 * Follows a journey through an identity provider's pages as a browser would, cookies included, to the
 * client's own address.
 */
export function browse(start: URL, redirectUri: string): Promise<URL> {
  return createBrowser({ redirectUri }).browse(start)
}
