import { request as sendHttp } from 'node:http'

/** A browser without a window: it keeps cookies by host as browsers do, and follows redirects. */
export type LoginBrowser = {
  /** Opens a page: navigation with redirects to the end. */
  open(url: string): Promise<Page>
  /** A navigation without redirects. */
  navigate(url: string, init?: LoginRequest): Promise<Response>
  /** A request of a script of the page. */
  script(url: string, init?: LoginRequest): Promise<Response>
  readonly cookies: Map<string, string>
  /** The lines of `set-cookie` so far. */
  readonly received: string[]
}

export type LoginRequest = { method?: string; headers?: Record<string, string>; body?: string }

export type Page = { url: URL; status: number; text: string; visited: string[] }

const maxSteps = 20

export function createLoginBrowser(): LoginBrowser {
  // Cookies have no ports: all servers of these tests share them, as in a browser.
  const cookies = new Map<string, string>()
  const received: string[] = []

  async function request(url: string, init: LoginRequest): Promise<Response> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...(cookie !== '' && { cookie }), ...init.headers }
    const response = await send(url, { ...init, headers })
    for (const line of response.headers.getSetCookie()) {
      received.push(line)
      const [pair = ''] = line.split(';', 1)
      const equals = pair.indexOf('=')
      const isRemoved = /;\s*max-age=0\b|expires=Thu, 01 Jan 1970/i.test(line)
      if (isRemoved) cookies.delete(pair.slice(0, equals))
      else cookies.set(pair.slice(0, equals), pair.slice(equals + 1))
    }
    return response
  }

  function navigate(url: string, init: LoginRequest = {}): Promise<Response> {
    const headers = { accept: 'text/html,*/*;q=0.8', 'sec-fetch-mode': 'navigate', ...init.headers }
    return request(url, { ...init, headers })
  }

  return {
    cookies,
    received,
    navigate,
    script(url, init = {}) {
      const headers = { 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin', ...init.headers }
      return request(url, { ...init, headers })
    },
    async open(start) {
      const visited: string[] = []
      let url = new URL(start)
      for (let step = 0; step < maxSteps; step += 1) {
        visited.push(url.href)
        const response = await navigate(url.href)
        const location = response.headers.get('location')
        const text = await response.text()
        if (location === null) return { url, status: response.status, text, visited }
        url = new URL(location, url)
      }
      throw new Error(`more than ${maxSteps} redirects: ${visited.join(' ')}`)
    },
  }
}

/** A request without the headers that `fetch` sets (`sec-fetch-mode`). */
function send(url: string, { method = 'GET', headers = {}, body }: LoginRequest): Promise<Response> {
  return new Promise((resolve, reject) => {
    const outgoing = sendHttp(url, { method, headers }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const pairs: [string, string][] = []
        for (let index = 0; index < incoming.rawHeaders.length; index += 2)
          pairs.push([incoming.rawHeaders[index] ?? '', incoming.rawHeaders[index + 1] ?? ''])
        const status = incoming.statusCode ?? 0
        const content = status === 204 || status === 304 ? null : Buffer.concat(chunks)
        resolve(new Response(content, { status, headers: pairs }))
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
