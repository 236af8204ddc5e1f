import { LoaderCircle, type LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import { Link } from 'wouter'
import { classNames } from '../class-names.ts'

export type ButtonTone = 'primary' | 'plain' | 'quiet' | 'danger'

type Look = { tone?: ButtonTone; size?: 'small' | 'medium'; icon?: LucideIcon | undefined }

type ButtonProps = Look & ComponentProps<'button'> & { busy?: boolean }

/** A button. `busy` displays progress and refuses clicks. */
export function Button({
  tone = 'plain',
  size = 'medium',
  icon: Icon,
  busy,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled || busy}
      aria-busy={busy || undefined}
      className={classNames(buttonClass(tone, size), rest.className)}
    >
      {busy ? (
        <LoaderCircle className="size-4 animate-spin" aria-hidden />
      ) : (
        Icon && <Icon className="size-4 shrink-0" aria-hidden />
      )}
      {children}
    </button>
  )
}

/** A link to a page of the console that looks like a button. */
export function ButtonLink({
  tone = 'plain',
  size = 'medium',
  icon: Icon,
  href,
  children,
}: Look & { href: string; children: ReactNode }) {
  return (
    <Link href={href} className={buttonClass(tone, size)}>
      {Icon && <Icon className="size-4 shrink-0" aria-hidden />}
      {children}
    </Link>
  )
}

const tones: Record<ButtonTone, string> = {
  primary: 'bg-accent text-on-accent border-transparent hover:bg-accent-strong shadow-card',
  plain: 'bg-surface text-ink border-line hover:bg-hover shadow-card',
  quiet: 'bg-transparent text-ink-soft border-transparent hover:bg-hover hover:text-ink',
  danger: 'bg-surface text-bad border-line hover:bg-bad-soft shadow-card',
}

const sizes = { small: 'h-7 px-2 text-xs gap-1.5', medium: 'h-8.5 px-3 text-sm gap-2' }

function buttonClass(tone: ButtonTone, size: 'small' | 'medium'): string {
  return classNames(
    'inline-flex items-center justify-center rounded-md border font-medium whitespace-nowrap select-none transition-colors',
    'disabled:opacity-55 disabled:cursor-not-allowed aria-disabled:opacity-55',
    tones[tone],
    sizes[size],
  )
}
