// Loaded into a gateway with `--import`: resolves names of tests, and reports each attempt to connect to a
// refused range.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const addresses = new Map(Object.entries(JSON.parse(process.env.TEST_NAMES ?? '{}')))
const lookup = dns.lookup

dns.lookup = (host, options, done) => {
  const address = addresses.get(host)
  if (address === undefined) return lookup(host, options, done)
  const family = address.includes(':') ? 6 : 4
  process.nextTick(() => (options.all ? done(null, [{ address, family }]) : done(null, address, family)))
}
syncBuiltinESMExports()
