"""The studio: a page on loopback in which a recurrent network is trained, rewound and inspected while it learns."""
