import { expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, textOf } from '../../../test/fixtures/pipeline.ts'
import { compileOidc } from './oidc.ts'

const config = { issuer: 'https://id.example.com', clientId: 'gateway' }

it.each([
  ['asks for a confirmation', 'a link of another site', 'cross-site', 'navigate', 'Log out?'],
  ['asks for a confirmation', 'an image on a related host', 'same-site', 'no-cors', 'Log out?'],
  ['ends the session', 'a link on a related host', 'same-site', 'navigate', 'Logged out'],
  ['ends the session', 'a link of the own origin', 'same-origin', 'navigate', 'Logged out'],
])('logout %s with %s', async (_effect, _cause, site, mode, title) => {
  const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': mode }
  const exchange = fixtureExchange({ method: 'GET', path: '/oauth/callback/logout', headers })
  const reply = await compileOidc(config, fixtureContext(), 'ui').onRequest?.(exchange)
  expect(reply && textOf(reply)).toContain(`<h1>${title}</h1>`)
})
