/** Follows a journey through an identity provider's pages as a browser would, cookies included, to the client's own address. */
export async function browse(start: URL, redirectUri: string, maxSteps = 12): Promise<URL> {
  const jar = new Map<string, string>()
  let url = start
  for (let step = 0; step < maxSteps; step += 1) {
    if (url.href.startsWith(redirectUri)) return url
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: cookie === '' ? {} : { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (line.split(';', 1)[0] ?? '').split('=', 2)
      jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) {
      throw new Error(`the journey ends at ${url}: ${response.status} ${await response.text()}`)
    }
    url = new URL(location, url)
  }
  throw new Error(`more than ${maxSteps} redirects`)
}
