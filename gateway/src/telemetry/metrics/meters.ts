/**
 * Creates one meter per name, shared while a snapshot or a request refers to it. After garbage collection of
 * the meter its series are dropped, so that a scrape contains existing routes only. `drop` must not refer to
 * the meter.
 */
export function createMeters<Meter extends object>(
  create: (name: string) => { meter: Meter; drop(): void },
): (name: string) => Meter {
  const meters = new Map<string, WeakRef<Meter>>()
  const dropped = new FinalizationRegistry<{ name: string; drop(): void }>(({ name, drop }) => {
    // The name may have a new meter in the meantime.
    if (meters.get(name)?.deref() !== undefined) return
    meters.delete(name)
    drop()
  })
  return (name) => {
    const known = meters.get(name)?.deref()
    if (known !== undefined) return known
    const { meter, drop } = create(name)
    meters.set(name, new WeakRef(meter))
    dropped.register(meter, { name, drop })
    return meter
  }
}
