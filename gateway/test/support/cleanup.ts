/** How long something started by a test lives: until the end of that test, or of its file. */
export type Lifetime = 'test' | 'file'

type End = () => Promise<void> | void

const ends: Record<Lifetime, End[]> = { test: [], file: [] }

/** Ends something after the test (or file), also after a failure; a failure to end it fails the test. */
export function endAfter(lifetime: Lifetime, end: End): void {
  ends[lifetime].push(end)
}

/** Ends everything of a lifetime, the latest first, because later ones may depend on earlier ones. */
export async function endAll(lifetime: Lifetime): Promise<void> {
  const failures: unknown[] = []
  for (const end of ends[lifetime].splice(0).reverse()) {
    try {
      await end()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length === 1) throw failures[0]
  if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '))
}
