import { expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { nameOf } from './logins.ts'

const identity = { iss: 'https://users.test', sub: 'u1' }

it.each([
  [{ ...identity, email: 'ada@a.test' }, 'u1, https://users.test'],
  [{ ...identity, email: 'ada@a.test', email_verified: true }, 'ada@a.test, u1, https://users.test'],
  [{ ...identity, email: 'x@a.test', preferred_username: 'ada' }, 'ada, u1, https://users.test'],
  [{}, 'without a name'],
])('the name of a user with the claims %j is %s', (jwt, name) => {
  expect(nameOf(fixtureExchange({}, { jwt }))).toBe(name)
})
