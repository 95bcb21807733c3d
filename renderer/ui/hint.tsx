import { useEffect, useRef } from 'preact/hooks';

/** Attributes that give an element one sentence of explanation, shown on hover and on focus. */
export function hint(text: string): { readonly 'data-hint': string; readonly 'aria-description': string } {
  return { 'data-hint': text, 'aria-description': text };
}

const showAfterMs = 400;
const edgePixels = 8;

/** The one bubble that shows the explanation of whatever is pointed at or focused. */
export function HintBubble() {
  const bubble = useRef<HTMLDivElement>(null);

  useEffect(() => {
    let timer: number | undefined;
    let shownFor: Element | undefined;

    const hide = (): void => {
      window.clearTimeout(timer);
      shownFor = undefined;
      if (bubble.current !== null) bubble.current.hidden = true;
    };
    const show = (element: Element): void => {
      const node = bubble.current;
      const text = element.getAttribute('data-hint');
      if (node === null || text === null || !element.isConnected) return;
      node.textContent = text;
      node.hidden = false;
      const at = element.getBoundingClientRect();
      const size = node.getBoundingClientRect();
      const left = Math.min(window.innerWidth - size.width - edgePixels, Math.max(edgePixels, at.left));
      const below = at.bottom + 6;
      const top = below + size.height < window.innerHeight ? below : at.top - size.height - 6;
      node.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    };
    let pressedAt: { readonly x: number; readonly y: number } | undefined;
    const handlePress = (event: PointerEvent): void => {
      pressedAt = { x: event.clientX, y: event.clientY };
      hide();
    };
    const handle = (event: Event): void => {
      if (event instanceof PointerEvent && pressedAt !== undefined) {
        // What a press brought under a pointer that rests there was not pointed at.
        const moved = Math.abs(event.clientX - pressedAt.x) + Math.abs(event.clientY - pressedAt.y);
        if (moved < 4) return;
        pressedAt = undefined;
      }
      const element =
        event.target instanceof Element ? (event.target.closest('[data-hint]') ?? undefined) : undefined;
      if (element === shownFor) return;
      hide();
      if (element === undefined) return;
      if (event.type === 'focusin' && !element.matches(':focus-visible')) return;
      shownFor = element;
      timer = window.setTimeout(() => show(element), showAfterMs);
    };
    const handleKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') hide();
    };
    document.addEventListener('pointerover', handle);
    document.addEventListener('focusin', handle);
    document.addEventListener('focusout', hide);
    document.addEventListener('pointerdown', handlePress);
    document.addEventListener('keydown', handleKey);
    document.addEventListener('scroll', hide, true);
    return () => {
      hide();
      document.removeEventListener('pointerover', handle);
      document.removeEventListener('focusin', handle);
      document.removeEventListener('focusout', hide);
      document.removeEventListener('pointerdown', handlePress);
      document.removeEventListener('keydown', handleKey);
      document.removeEventListener('scroll', hide, true);
    };
  }, []);

  // The text is already with the element, as its description.
  return <div ref={bubble} class="hint-bubble" aria-hidden="true" hidden />;
}
