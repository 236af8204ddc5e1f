import { Switch as Radix } from 'radix-ui'
import type { ComponentProps } from 'react'

type SwitchProps = Omit<ComponentProps<typeof Radix.Root>, 'onCheckedChange' | 'onChange'> & {
  onChange(checked: boolean): void
}

/** An on/off control. Needs a label: `aria-label`, or a `Field`. */
export function Switch({ onChange, ...rest }: SwitchProps) {
  return (
    <Radix.Root
      {...rest}
      onCheckedChange={onChange}
      className="inline-flex h-5 w-9 shrink-0 items-center rounded-full border border-line-strong bg-sunken transition-colors disabled:opacity-50 data-[state=checked]:border-accent data-[state=checked]:bg-accent"
    >
      <Radix.Thumb className="block size-3.5 translate-x-0.5 rounded-full bg-line-strong transition-transform data-[state=checked]:translate-x-4.5 data-[state=checked]:bg-on-accent" />
    </Radix.Root>
  )
}
